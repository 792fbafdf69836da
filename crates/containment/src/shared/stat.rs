//! One line of `/proc/PID/stat`, read without allocating.
//!
//! Compiled twice, into the library and into the guardian. It owns the parsing; who reads the file, and what the numbers
//! are good for, is the reader's affair.

/// What we use of a process's status line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) pid: i32,
    /// One letter: R, S, D, Z, T, …
    pub(crate) state: u8,
    pub(crate) ppid: i32,
    pub(crate) pgrp: i32,
    #[cfg_attr(not(test), allow(dead_code, reason = "the library shows it, the guardian does not need it"))]
    pub(crate) session: i32,
    /// How many threads it has; a dead one still counts itself.
    pub(crate) threads: u64,
    /// When it started, in clock ticks since boot.
    pub(crate) ticks: u64,
}

impl Stat {
    /// Parses the line; `None` if it is not one. The name in brackets may hold anything, brackets and spaces included,
    /// so the fields are counted from the last closing bracket.
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let pid = number(line.split(|b| *b == b' ').next()?)?;
        let close = line.iter().rposition(|b| *b == b')')?;
        let mut fields = line.get(close + 2..)?.split(|b| *b == b' ');
        let state = *fields.next()?.first()?;
        let ppid = number(fields.next()?)?;
        let pgrp = number(fields.next()?)?;
        let session = number(fields.next()?)?;
        // The session is field 6 of proc(5), the number of threads field 20, the start time field 22.
        let threads = number(fields.nth(13)?)?;
        let ticks = number(fields.nth(1)?)?;
        Some(Self {
            pid: i32::try_from(pid).ok()?,
            state,
            ppid: i32::try_from(ppid).ok()?,
            pgrp: i32::try_from(pgrp).ok()?,
            session: i32::try_from(session).ok()?,
            threads,
            ticks,
        })
    }

    /// Dead, and only waiting to be collected. One whose first thread has ended looks the same while others live on.
    pub(crate) fn is_zombie(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x') && self.threads <= 1
    }
}

/// The name in brackets.
#[cfg_attr(not(test), allow(dead_code, reason = "the library shows it, the guardian does not need it"))]
pub(crate) fn name(line: &[u8]) -> Option<&[u8]> {
    let open = line.iter().position(|b| *b == b'(')?;
    let close = line.iter().rposition(|b| *b == b')')?;
    line.get(open + 1..close)
}

/// The last field, which of a dead process is its raw wait status.
#[cfg_attr(not(test), allow(dead_code, reason = "the guardian needs it, the library does not"))]
pub(crate) fn exit_status(line: &[u8]) -> Option<i32> {
    i32::try_from(field(line, 52)?).ok()
}

/// The field with that number of proc(5), from 4 on. The name before the third may hold anything, so they are counted from the
/// last closing bracket.
pub(crate) fn field(line: &[u8], of_proc5: usize) -> Option<u64> {
    let close = line.iter().rposition(|b| *b == b')')?;
    number(line.get(close + 2..)?.split(|b| *b == b' ').nth(of_proc5.checked_sub(3)?)?)
}

/// A decimal number that fills the whole slice, but for blanks and a line end around it.
pub(crate) fn number(digits: &[u8]) -> Option<u64> {
    let digits = digits.trim_ascii();
    // A negative number appears for kernel threads only (their session and group may be -1), and none of them is ours.
    let digits = digits.strip_prefix(b"-").map_or(digits, |_| b"0");
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_u64, |n, d| {
        let d = d.checked_sub(b'0').filter(|d| *d <= 9)?;
        n.checked_mul(10)?.checked_add(u64::from(d))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_full_of_brackets_and_spaces_does_not_shift_the_fields() {
        let line = b"42 (a) R 1 (b) S 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 123456 1000 0 rest";
        let stat = Stat::parse(line).expect("a status line");
        assert_eq!((stat.pid, stat.state, stat.ppid), (42, b'S', 7));
        assert_eq!((stat.pgrp, stat.session, stat.ticks), (42, 41, 123_456));
        assert_eq!(name(line), Some(&b"a) R 1 (b"[..]));
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_no_zombie() {
        let line =
            |threads| format!("42 (x) Z 7 42 41 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 {threads} 0 123456 1000 0");
        assert!(Stat::parse(line(1).as_bytes()).expect("a status line").is_zombie());
        assert!(!Stat::parse(line(3).as_bytes()).expect("a status line").is_zombie());
    }

    #[test]
    fn half_a_line_is_no_status() {
        assert_eq!(Stat::parse(b"42 (cat) S 7 42 41 0"), None);
        assert_eq!(Stat::parse(b""), None);
        assert_eq!(Stat::parse(b"42 (cat"), None);
    }

    #[test]
    fn the_exit_status_is_the_last_field_of_a_whole_line() {
        let line = format!("42 (x y) Z 7 {}15\n", "0 ".repeat(47));
        assert_eq!(exit_status(line.as_bytes()), Some(15));
        assert_eq!(exit_status(b"42 (x y) Z 7 0 0 15\n"), None);
    }

    #[test]
    fn our_own_line_is_read() {
        let line = std::fs::read("/proc/self/stat").expect("own status");
        let stat = Stat::parse(&line).expect("a status line");
        assert_eq!(stat.pid.unsigned_abs(), std::process::id());
        assert!(!stat.is_zombie());
    }
}
