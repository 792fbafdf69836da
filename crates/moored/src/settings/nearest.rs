//! What was meant by a name that is not known. Pure.

/// A name this many letters away from a known one is taken for a slip of the hand.
const MOST_SLIPS: usize = 2;

/// The known name that is nearest to this one, if one is near.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let near = known.into_iter().map(|known| (slips(name, known), known));
    near.filter(|(slips, _)| *slips <= MOST_SLIPS).min().map(|(_, known)| known)
}

/// How many letters must be added, removed or changed to make one of the other.
fn slips(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, known) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *known);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_that_differ_are_counted() {
        assert_eq!([slips("grace", "grace"), slips("grase", "grace"), slips("grce", "grace")], [0, 1, 1]);
        assert_eq!([slips("", "abc"), slips("abc", ""), slips("kitten", "sitting")], [3, 3, 3]);
    }

    #[test]
    fn a_slip_names_what_was_meant_and_another_word_does_not() {
        let known = ["grace", "kill-after", "keep"];
        assert_eq!(nearest("grase", known), Some("grace"));
        assert_eq!(nearest("killafter", known), Some("kill-after"));
        assert_eq!(nearest("from-the-future", known), None);
    }
}
