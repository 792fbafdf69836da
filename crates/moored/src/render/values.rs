//! Numbers as people read them. Pure.

/// How long, in its two largest units.
pub(crate) fn span(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0 if seconds < 1.0 => format!("{}ms", (seconds * 1000.0) as u64),
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m {}s", whole / 60, whole % 60),
        3600..86400 => format!("{}h {}m", whole / 3600, whole % 3600 / 60),
        _ => format!("{}d {}h", whole / 86400, whole % 86400 / 3600),
    }
}

/// How long ago.
pub(crate) fn ago(seconds: f64) -> String {
    format!("{} ago", span(seconds.max(0.0)))
}

/// How many bytes, by 1024.
pub(crate) fn bytes(count: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = count as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 { format!("{count} B") } else { format!("{value:.1} {}", UNITS[unit]) }
}

/// A share of one processor.
pub(crate) fn percent(share: f64) -> String {
    format!("{share:.1}%")
}

/// A command as one line, cut where it would push the rest away.
pub(crate) fn command_line(words: &[String], longest: usize) -> String {
    let line = words.join(" ");
    if line.chars().count() <= longest {
        return line;
    }
    line.chars().take(longest.saturating_sub(1)).chain(['…']).collect()
}

/// The beginnings by which these ids can be told apart, all of one length and at least 12 long.
pub(crate) fn short_ids(ids: &[&str]) -> Vec<String> {
    let distinct = |length: usize| {
        let mut cut: Vec<&str> = ids.iter().map(|id| id.get(..length).unwrap_or(id)).collect();
        cut.sort_unstable();
        cut.windows(2).all(|pair| pair[0] != pair[1])
    };
    let longest = ids.iter().map(|id| id.len()).max().unwrap_or_default();
    let length = (12..longest).find(|length| distinct(*length)).unwrap_or(longest);
    ids.iter().map(|id| id.get(..length).unwrap_or(id).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_have_two_units() {
        let spans = [0.25, 12.5, 61.0, 3600.0, 90_061.0].map(span);
        assert_eq!(spans, ["250ms", "12s", "1m 1s", "1h 0m", "1d 1h"]);
    }

    #[test]
    fn bytes_count_by_1024() {
        assert_eq!([0, 1023, 1024, 5 << 20].map(bytes), ["0 B", "1023 B", "1.0 KiB", "5.0 MiB"]);
    }

    #[test]
    fn short_ids_are_as_long_as_needed() {
        let one = short_ids(&["01ABCDEFGHJKMNPQRSTVWXYZ00"]);
        assert_eq!(one, ["01ABCDEFGHJK"]);
        let two = short_ids(&["01ABCDEFGHJKMNPQRSTVWXYZ00", "01ABCDEFGHJKMNXQRSTVWXYZ00"]);
        assert_eq!(two, ["01ABCDEFGHJKMNP", "01ABCDEFGHJKMNX"]);
    }

    #[test]
    fn a_long_command_is_cut() {
        assert_eq!(command_line(&["abc".into(), "def".into()], 5), "abc …");
        assert_eq!(command_line(&["abc".into()], 5), "abc");
    }
}
