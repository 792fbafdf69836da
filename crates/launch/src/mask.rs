//! Secrets are masked wherever a command line is shown or written down.
//!
//! A secret is known by its place (the value of an option or a variable whose name sounds secret, what follows `-p` of a
//! program that logs in, the password in an address) or by its shape (a token of a known form). This file owns the order
//! of the words: what one word says of the next. `names` knows which names sound secret, `values` finds `NAME=VALUE`
//! within a word, `shapes` what is known by itself. All of it is pure.
//!
//! Rather too much is masked than too little: a word that is masked in vain does no harm.

mod names;
mod shapes;
mod values;

use std::ffi::OsString;

pub(super) const MASK: &str = "***";

/// A command for people and files: what follows a name that sounds secret is masked, as the next word, or within a word
/// after `=` or `:`, also in a query, an object or a line for a shell; and so are passwords in addresses, what follows
/// `Bearer`, and tokens of known forms.
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
/// assert_eq!(masked(&["mysql", "-pabc", "db"]), "mysql -p*** db");
/// assert_eq!(masked(&["srv", "postgres://me:abc@host/db"]), "srv postgres://me:***@host/db");
/// ```
#[must_use]
pub fn masked(command: &[OsString]) -> Vec<String> {
    let mut reader = WordReader::default();
    command.iter().map(|word| reader.mask(&word.to_string_lossy())).collect()
}

/// A sentence that may quote a command line, for people and files.
#[must_use]
pub fn masked_text(text: &str) -> String {
    shapes::mask(&mask_line(&values::mask(text, values::Within::Line)))
}

/// What the words so far say of the next one.
#[derive(Debug, Default)]
struct WordReader {
    hide: Hide,
    /// The short options that take a password, of the program that was named last and logs in.
    password_options: &'static [&'static str],
    /// The word before is a shell's `-c`.
    is_script: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Hide {
    /// The next word is nothing special.
    #[default]
    No,
    /// The next word is a secret, even if it begins with a dash.
    Next,
    /// The next word is a secret unless it is an option.
    NextUnlessOption,
}

impl WordReader {
    /// A word of a command.
    fn mask(&mut self, word: &str) -> String {
        let within = if self.is_script { values::Within::Line } else { values::Within::Word };
        self.mask_by_place(word).unwrap_or_else(|| {
            let text = values::mask(word, within);
            let text = if text.contains(char::is_whitespace) { mask_line(&text) } else { text };
            shapes::mask(&text)
        })
    }

    /// The word as it is shown, if the words before it say that it is a secret or has one.
    fn mask_by_place(&mut self, word: &str) -> Option<String> {
        let is_hidden = match self.hide {
            Hide::No => false,
            Hide::Next => true,
            Hide::NextUnlessOption => !word.starts_with("--"),
        };
        let attached = self.attached_password(word);
        // Of a masked word too: in `--token --api-key X` it is not known which of them has a value.
        self.look_ahead(word);
        if is_hidden { Some(MASK.to_owned()) } else { attached.map(|option| format!("{option}{MASK}")) }
    }

    /// The option in `-pSECRET`.
    fn attached_password(&self, word: &str) -> Option<&'static str> {
        let mut options = self.password_options.iter();
        options.find(|option| word.len() > option.len() && word.starts_with(**option)).copied()
    }

    fn look_ahead(&mut self, word: &str) {
        let word = bare(word);
        self.hide = Hide::No;
        self.is_script = names::is_script_option(word);
        if word.contains(char::is_whitespace) {
            return;
        }
        let is_header = word.strip_suffix(':').is_some_and(names::sounds_secret);
        if is_header || self.password_options.contains(&word) || names::is_secret_option(word) {
            self.hide = Hide::Next;
        } else if word.eq_ignore_ascii_case("bearer") {
            self.hide = Hide::NextUnlessOption;
        } else if let Some(options) = names::password_options(word) {
            self.password_options = options;
        }
    }
}

/// Several words in one, as for a shell: each is read like a word of a command, and a quoted part like a line of its own.
fn mask_line(line: &str) -> String {
    let mut reader = WordReader::default();
    let mut text = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(begin) = rest.find(|c: char| !c.is_whitespace()) {
        text.push_str(&rest[..begin]);
        rest = &rest[begin..];
        let (word, after) = rest.split_at(end_of_word(rest));
        text.push_str(&mask_word_of_line(&mut reader, word));
        rest = after;
    }
    text.push_str(rest);
    text
}

/// A word of a line in which names have been looked for already.
fn mask_word_of_line(reader: &mut WordReader, word: &str) -> String {
    if bare(word) == MASK {
        reader.look_ahead(word);
        return word.to_owned();
    }
    reader.mask_by_place(word).unwrap_or_else(|| match quoted_part(word) {
        Some((before, inner, behind)) => format!("{before}{}{}", mask_line(inner), mask_line(behind)),
        None => word.to_owned(),
    })
}

/// A word without the quotes, brackets and commas around it.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| c.is_whitespace() || "\"'`()[]{},".contains(c))
}

/// Up to the first blank that is not quoted. A quote that is never closed is an apostrophe.
fn end_of_word(text: &str) -> usize {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        if c.is_whitespace() {
            return at;
        }
        at += c.len_utf8();
        if matches!(c, '"' | '\'') {
            at += text[at..].find(c).map_or(0, |end| end + 1);
        }
    }
    at
}

/// A word with blanks in it as what comes before its first quoted part, that part, and the rest.
fn quoted_part(word: &str) -> Option<(&str, &str, &str)> {
    if !word.contains(char::is_whitespace) {
        return None;
    }
    let begin = word.find(['"', '\''])? + 1;
    let length = word[begin..].find(&word[begin - 1..begin])?;
    let (inner, behind) = word[begin..].split_at(length);
    Some((&word[..begin], inner, behind))
}

#[cfg(test)]
mod tests;
