//! `NAME=VALUE` and `NAME: VALUE` within a word: in a variable, a query, a header, an object, a connection string, or a
//! line for a shell.

use std::ops::Range;

use super::MASK;
use super::names::sounds_secret;

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Within {
    /// One word of a command: a value at its beginning goes on to its end, blanks included.
    Word,
    /// Several words: such a value ends at a blank.
    Line,
}

/// The text with every value masked whose name sounds secret.
pub(super) fn mask(text: &str, within: Within) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut copied, mut at) = (0, 0);
    while let Some(name) = next_name(text, at) {
        at = name.end;
        if let Some(value) = secret_value(text, name, within) {
            shown.push_str(&text[copied..value.start]);
            shown.push_str(MASK);
            (copied, at) = (value.end, value.end);
        }
    }
    shown.push_str(&text[copied..]);
    shown
}

fn next_name(text: &str, from: usize) -> Option<Range<usize>> {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
    let start = from + text[from..].find(is_name)?;
    let length = text[start..].find(|c| !is_name(c)).unwrap_or(text.len() - start);
    Some(start..start + length)
}

/// Where the value of this name is, if there is one and it is a secret.
fn secret_value(text: &str, name: Range<usize>, within: Within) -> Option<Range<usize>> {
    let (before, word) = (&text[..name.start], &text[name.clone()]);
    // A host, and its port.
    let is_host = before.ends_with("//") || before.ends_with('@');
    if is_host || !sounds_secret(word) {
        return None;
    }
    let begin = begin_of_value(text, name.end)?;
    let value = &text[begin..];
    let upper = word.to_ascii_uppercase();
    // What a header says goes on to the end of its line.
    let is_header =
        text[..begin].trim_end().ends_with(':') && (upper.contains("AUTH") || upper.contains("COOKIE"));
    let length = match Ends::of(before, within) {
        Ends::AtTheEnd => value.len(),
        _ if value.starts_with(['"', '\'', '\\', '[', '{']) => length_of_group(value),
        _ if is_header => value.find(['"', '\'']).unwrap_or(value.len()),
        ends => value.find(|c| ends.at(c)).unwrap_or(value.len()),
    };
    (length > 0).then_some(begin..begin + length)
}

/// Behind the `=` or `:` that follows a name, its closing quote and blanks.
fn begin_of_value(text: &str, end_of_name: usize) -> Option<usize> {
    let after = text[end_of_name..].trim_start_matches(['"', '\'', '\\']).trim_start_matches(' ');
    // The scheme of an address is no name.
    if after.starts_with("://") {
        return None;
    }
    let value = after.strip_prefix(['=', ':'])?.trim_start_matches(['=', ':']).trim_start_matches(' ');
    Some(text.len() - value.len())
}

/// What ends a value that is not quoted: whatever separates its name from what comes before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    AtTheEnd,
    AtABlank,
    InAQuery,
    InAnObject,
    InAConnectionString,
    Otherwise,
}

impl Ends {
    fn of(before: &str, within: Within) -> Self {
        let bare = before.trim_end_matches(['"', '\'', '\\']);
        match bare.trim_end().chars().next_back() {
            _ if within == Within::Word && before.is_empty() => Self::AtTheEnd,
            Some('=' | ':')
                if within == Within::Word
                    && bare.len() == before.len()
                    && !before.contains(char::is_whitespace) =>
            {
                Self::AtTheEnd
            }
            Some('?' | '&') => Self::InAQuery,
            Some(',' | '{' | '[' | '(') => Self::InAnObject,
            Some(';') => Self::InAConnectionString,
            None => Self::AtABlank,
            _ if bare.ends_with(char::is_whitespace) => Self::AtABlank,
            _ => Self::Otherwise,
        }
    }

    fn at(self, c: char) -> bool {
        let is_quote = matches!(c, '"' | '\'');
        match self {
            Self::AtTheEnd => false,
            Self::AtABlank => is_quote || c.is_whitespace(),
            Self::InAQuery => is_quote || c.is_whitespace() || matches!(c, '&' | '#'),
            Self::InAnObject => is_quote || c.is_whitespace() || matches!(c, ',' | '}' | ']' | ')'),
            Self::InAConnectionString => is_quote || c == ';',
            Self::Otherwise => is_quote || c.is_whitespace() || matches!(c, '&' | ',' | '}' | ';'),
        }
    }
}

/// The length of a quoted text, or of a list or an object with all that is in it. One that is not closed goes on to the end.
fn length_of_group(value: &str) -> usize {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    // In a text that was quoted once more, each quote has a backslash before it.
    let is_quoted_twice = value.starts_with('\\');
    for (at, c) in value.char_indices() {
        if c == '\\' && !is_quoted_twice {
            is_escaped = !is_escaped;
            continue;
        }
        match (c, quote) {
            _ if is_escaped => {}
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('[' | '{', None) => depth += 1,
            (']' | '}', None) => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = false;
        let is_over = depth == 0 && quote.is_none() && c != '\\';
        if is_over {
            return at + c.len_utf8();
        }
    }
    value.len()
}
