//! Secrets that are known by themselves: passwords in addresses, what follows `Bearer`, and tokens of known forms.

use super::MASK;

/// The text with all of them masked.
pub(super) fn mask(text: &str) -> String {
    mask_tokens(&mask_bearers(&mask_addresses(text)))
}

/// `scheme://USER:PASSWORD@HOST`.
fn mask_addresses(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        shown.push_str(before);
        rest = after;
        if let Some(user_info) = user_info(after) {
            shown.push_str(&mask_user_info(user_info));
            rest = &after[user_info.len()..];
        }
    }
    shown.push_str(rest);
    shown
}

/// What stands before the `@` of an address.
fn user_info(address: &str) -> Option<&str> {
    let end = address.find(|c: char| c.is_whitespace() || matches!(c, '"' | '`')).unwrap_or(address.len());
    let address = &address[..end];
    let authority = &address[..address.find(['/', '?', '#']).unwrap_or(end)];
    if let Some(at) = authority.rfind('@') {
        return Some(&address[..at]);
    }
    // A password with a slash in it that should have been escaped; unless it is a port, and the `@` is the path's.
    let (_, port) = authority.split_once(':').filter(|_| !authority.starts_with('['))?;
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    if is_port { None } else { address.rfind('@').map(|at| &address[..at]) }
}

/// A user without a password may be a token; one with this many letters is no name.
const LONGEST_USER: usize = 15;

fn mask_user_info(user_info: &str) -> String {
    let (user, password) = user_info.split_once(':').unwrap_or((user_info, ""));
    let user = if user.len() > LONGEST_USER { MASK } else { user };
    match (user_info.contains(':'), password) {
        (false, _) => user.to_owned(),
        (true, "") => format!("{user}:"),
        (true, _) => format!("{user}:{MASK}"),
    }
}

/// `Bearer TOKEN`, in whatever header.
fn mask_bearers(text: &str) -> String {
    const WORD: &str = "bearer";
    let lower = text.to_ascii_lowercase();
    let mut shown = String::with_capacity(text.len());
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = lower[at..].find(WORD) {
        let begins_word = !lower[..at + found].ends_with(|c: char| c.is_alphanumeric());
        at += found + WORD.len();
        let value = text[at..].trim_start();
        let begin = text.len() - value.len();
        let is_option =
            value.strip_prefix("--").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
        if begins_word && begin > at && !is_option {
            let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',');
            let length = value.find(ends).unwrap_or(value.len());
            shown.push_str(&text[copied..begin]);
            shown.push_str(if length > 0 { MASK } else { "" });
            (copied, at) = (begin + length, begin + length);
        }
    }
    shown.push_str(&text[copied..]);
    shown
}

/// How tokens of this kind go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Body {
    /// Nothing else begins like this.
    Any,
    /// Other words begin like this: only with a digit or a capital, or as one long word.
    LooksRandom,
    /// Capitals and digits only.
    Capitals,
}

const TOKENS: [(&str, Body); 36] = [
    ("ghp_", Body::Any),
    ("gho_", Body::Any),
    ("ghu_", Body::Any),
    ("ghs_", Body::Any),
    ("ghr_", Body::Any),
    ("github_pat_", Body::Any),
    ("glpat-", Body::Any),
    ("xoxa-", Body::Any),
    ("xoxb-", Body::Any),
    ("xoxc-", Body::Any),
    ("xoxd-", Body::Any),
    ("xoxe-", Body::Any),
    ("xoxe.", Body::Any),
    ("xoxo-", Body::Any),
    ("xoxp-", Body::Any),
    ("xoxr-", Body::Any),
    ("xoxs-", Body::Any),
    ("xapp-", Body::LooksRandom),
    ("sk-", Body::LooksRandom),
    ("sk_live_", Body::Any),
    ("sk_test_", Body::Any),
    ("rk_live_", Body::Any),
    ("whsec_", Body::Any),
    ("shpat_", Body::Any),
    ("dckr_pat_", Body::Any),
    ("dop_v1_", Body::Any),
    ("lin_api_", Body::Any),
    ("npm_", Body::LooksRandom),
    ("pypi-", Body::LooksRandom),
    ("hf_", Body::LooksRandom),
    ("gsk_", Body::LooksRandom),
    ("ya29.", Body::LooksRandom),
    ("AIza", Body::LooksRandom),
    ("eyJ", Body::LooksRandom),
    ("AKIA", Body::Capitals),
    ("ASIA", Body::Capitals),
];

fn mask_tokens(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(c) = rest.chars().next() {
        let begins_word = !before.is_some_and(char::is_alphanumeric);
        let length = if begins_word { length_of_token(rest) } else { 0 };
        if length > 0 {
            shown.push_str(MASK);
        } else {
            shown.push(c);
        }
        let (taken, after) = rest.split_at(length.max(c.len_utf8()));
        before = taken.chars().next_back();
        rest = after;
    }
    shown
}

/// The length of the token that begins here, or 0.
fn length_of_token(text: &str) -> usize {
    let Some((prefix, body)) = TOKENS.iter().find(|(prefix, _)| text.starts_with(prefix)) else { return 0 };
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let length = text.find(|c| !is_token(c)).unwrap_or(text.len());
    let rest = &text[prefix.len()..length.max(prefix.len())];
    let is_one = match body {
        Body::Any => rest.len() >= 4,
        Body::LooksRandom => {
            let is_mixed = rest.contains(|c: char| c.is_ascii_digit() || c.is_ascii_uppercase());
            rest.len() >= 6 && (is_mixed || !rest.contains(['-', '_', '.']))
        }
        Body::Capitals => {
            rest.len() >= 8 && rest.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        }
    };
    if is_one { length } else { 0 }
}
