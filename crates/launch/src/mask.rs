//! Secrets are masked wherever a command is shown or written down.

use std::ffi::OsString;

const MASK: &str = "***";

/// A command for people and files: what follows a name that sounds secret is masked, as the next word, or within a word
/// after `=` or `:`, also in a query, an object or a line for a shell.
///
/// ```
/// use moored_launch::masked;
///
/// let masked = |words: &[&str]| masked(&words.iter().map(Into::into).collect::<Vec<_>>()).join(" ");
/// assert_eq!(masked(&["srv", "--api-key", "abc", "--port", "1"]), "srv --api-key *** --port 1");
/// assert_eq!(masked(&["env", "GITHUB_TOKEN=abc", "srv"]), "env GITHUB_TOKEN=*** srv");
/// assert_eq!(masked(&["docker", "run", "--env=GH_TOKEN=abc", "img"]), "docker run --env=GH_TOKEN=*** img");
/// assert_eq!(masked(&["srv", "--header", "Authorization: Bearer abc"]), "srv --header Authorization: ***");
/// assert_eq!(masked(&["srv", "--header=X-Api-Key:abc"]), "srv --header=X-Api-Key:***");
/// assert_eq!(masked(&["srv", "https://h/?a=1&api_key=S&b=2"]), "srv https://h/?a=1&api_key=***&b=2");
/// assert_eq!(masked(&["srv", r#"{"apiKey": "S", "b": 1}"#]), r#"srv {"apiKey": ***, "b": 1}"#);
/// assert_eq!(masked(&["sh", "-c", "srv --api-key abc --port 1"]), "sh -c srv --api-key *** --port 1");
/// ```
#[must_use]
pub fn masked(command: &[OsString]) -> Vec<String> {
    let mut hide_next = false;
    command
        .iter()
        .map(|word| {
            let word = word.to_string_lossy();
            // An option is not the value of the one before.
            if std::mem::take(&mut hide_next) && !word.starts_with('-') {
                return MASK.to_owned();
            }
            if !word.contains(char::is_whitespace) {
                hide_next = is_secret_option(&word);
            }
            mask_within(&word)
        })
        .collect()
}

/// An option whose value is the next word.
fn is_secret_option(word: &str) -> bool {
    word.starts_with('-') && !word.contains(['=', ':']) && sounds_secret(word)
}

/// Every value within a word that follows a secret name.
fn mask_within(word: &str) -> String {
    let mut text = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(found) = next_secret(rest) {
        text.push_str(&rest[..found.begin]);
        text.push_str(MASK);
        rest = &rest[found.end..];
    }
    text.push_str(rest);
    text
}

/// Where a secret value stands.
struct Secret {
    begin: usize,
    end: usize,
}

fn next_secret(text: &str) -> Option<Secret> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let mut at = 0;
    while at < text.len() {
        let start = at + text[at..].find(is_name)?;
        let end = start + text[start..].find(|c| !is_name(c)).unwrap_or(text.len() - start);
        at = end;
        if sounds_secret(&text[start..end])
            && let Some(begin) = value_after(text, &text[start..end], end)
        {
            let value = &text[begin..];
            let length =
                length_of_value(value, text[start..end].to_ascii_uppercase().contains("AUTHORIZATION"));
            if length > 0 {
                return Some(Secret { begin, end: begin + length });
            }
        }
    }
    None
}

/// Where the value of the name that ends here begins: after `=` or `:`, or for an option after a blank.
fn value_after(text: &str, name: &str, end: usize) -> Option<usize> {
    let after = text[end..].trim_start_matches(['"', '\'']);
    let quotes = text.len() - end - after.len();
    if let Some(value) = after.strip_prefix(['=', ':']) {
        return Some(end + quotes + 1 + (value.len() - value.trim_start_matches(' ').len()));
    }
    let value = after.strip_prefix(' ').filter(|value| name.starts_with('-') && !value.starts_with('-'))?;
    Some(text.len() - value.len())
}

/// Up to the end of a quoted text, else to whatever ends a value in a query, an object or a line. What is said after
/// `Authorization` may have blanks in it.
fn length_of_value(value: &str, to_the_end: bool) -> usize {
    if let Some(quoted) = value.strip_prefix('"') {
        return quoted.find('"').map_or(value.len(), |at| at + 2);
    }
    let ends =
        |c: char| matches!(c, '&' | ',' | '}' | ';' | '"' | '\'') || (c.is_whitespace() && !to_the_end);
    value.find(ends).unwrap_or(value.len())
}

/// Rather too much than too little: what is masked in vain does no harm.
fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "AUTHORIZATION", "CREDENTIAL"]
        .iter()
        .any(|part| name.contains(part))
}
