//! Secrets are masked wherever a command is shown or written down.

use std::ffi::OsString;

const MASK: &str = "***";

/// A command for people and files: what follows a name that sounds secret is masked, by `=`, as the next word, or after
/// `Authorization:`.
///
/// ```
/// use moored_supervisor::spec::masked;
///
/// let masked = |words: &[&str]| masked(&words.iter().map(Into::into).collect::<Vec<_>>()).join(" ");
/// assert_eq!(masked(&["srv", "--api-key", "abc", "--port", "1"]), "srv --api-key *** --port 1");
/// assert_eq!(masked(&["env", "GITHUB_TOKEN=abc", "srv"]), "env GITHUB_TOKEN=*** srv");
/// assert_eq!(masked(&["srv", "--header", "Authorization: Bearer abc"]), "srv --header Authorization: ***");
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
            mask_word(&word).unwrap_or_else(|| {
                hide_next = word.starts_with('-') && sounds_secret(&word);
                word.into_owned()
            })
        })
        .collect()
}

/// The word with its value masked, if it has a secret one.
fn mask_word(word: &str) -> Option<String> {
    let (name, _) = word.split_once('=').filter(|(name, _)| sounds_secret(name)).or_else(|| {
        word.split_once(": ")
            .filter(|(name, _)| sounds_secret(name) || name.eq_ignore_ascii_case("authorization"))
    })?;
    let sign = &word[name.len()..];
    let sign = if sign.starts_with('=') { "=" } else { ": " };
    Some(format!("{name}{sign}{MASK}"))
}

fn sounds_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["TOKEN", "KEY", "SECRET", "PASSWORD", "PASSWD", "AUTHORIZATION", "CREDENTIAL"]
        .iter()
        .any(|part| name.contains(part))
}
