//! Which processes a sweep is about: pure, from a record and a look at all processes.

use crate::process::identity::ProcessIdentity;
use crate::record::cookie::SessionId;
use crate::record::session_record::Record;

/// A process and its mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marked {
    pub(crate) identity: ProcessIdentity,
    pub(crate) parent: u32,
    pub(crate) cookie: u64,
    /// It runs a program that this session keeps.
    pub(crate) runs_kept: bool,
}

/// Who is left of that session: carries its cookie (or that of a session inside it), is not older than the session, is
/// not kept nor below a kept one, and does not belong to a live session that happens to have the same cookie.
pub(crate) fn targets(record: &Record, marked: &[Marked], live: &[SessionId]) -> Vec<ProcessIdentity> {
    let foreign = |cookie| live.iter().any(|other| other.covers(cookie) && !record.id.encloses(*other));
    marked
        .iter()
        .filter(|m| record.id.covers(m.cookie) && m.identity.start_ticks >= record.started_ticks)
        .filter(|m| !foreign(m.cookie) && !is_below_kept(record, marked, m))
        .map(|m| m.identity)
        .collect()
}

fn is_below_kept(record: &Record, marked: &[Marked], of: &Marked) -> bool {
    let mut at = *of;
    // A chain of parents is shorter than the table.
    for _ in 0..=marked.len() {
        if at.runs_kept || record.kept.contains(&at.identity) {
            return true;
        }
        match marked.iter().find(|m| m.identity.pid == at.parent) {
            Some(parent) => at = *parent,
            None => return false,
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::identity::BootId;

    fn process(pid: u32, start_ticks: u64) -> ProcessIdentity {
        ProcessIdentity { pid, start_ticks, boot: BootId::current().expect("a boot") }
    }

    fn record(id: SessionId) -> Record {
        Record {
            id,
            label: String::new(),
            owner: process(2, 50),
            started_ticks: 100,
            pid_namespace: 1,
            leaf: None,
            on_end: Vec::new(),
            on_end_patience: std::time::Duration::ZERO,
            keep: Vec::new(),
            processes: Vec::new(),
            kept: Vec::new(),
            ended: false,
        }
    }

    fn marked(pid: u32, ticks: u64, parent: u32, cookie: u64) -> Marked {
        Marked { identity: process(pid, ticks), parent, cookie, runs_kept: false }
    }

    #[test]
    fn only_those_with_the_cookie_that_are_not_older_are_left_of_a_session() {
        let (ours, other) = (SessionId::choose(None, 1 << 40), SessionId::choose(None, 1 << 41));
        let (ours_value, other_value) = (ours.cookie().expect("one"), other.cookie().expect("one"));
        let table = [
            marked(10, 100, 1, ours_value),
            marked(11, 99, 1, ours_value),
            marked(12, 200, 1, other_value),
            marked(13, 200, 1, 1024),
        ];
        assert_eq!(targets(&record(ours), &table, &[]), [process(10, 100)]);
    }

    #[test]
    fn a_session_inside_goes_with_it_and_a_live_one_beside_it_stays() {
        let ours = SessionId::choose(None, 1 << 40);
        let inside = SessionId::choose(ours.cookie(), 77 << 17);
        let value = inside.cookie().expect("one");
        let table = [marked(10, 100, 1, value)];
        assert_eq!(targets(&record(ours), &table, &[inside]), [process(10, 100)], "it was started by ours");
        assert_eq!(targets(&record(inside), &table, &[ours]), [], "a live session has a claim on it");
    }

    #[test]
    fn what_is_kept_stays_with_all_below_it() {
        let ours = SessionId::choose(None, 1 << 40);
        let value = ours.cookie().expect("one");
        let table = [marked(10, 100, 1, value), marked(11, 100, 10, value), marked(12, 100, 11, value)];
        let kept = Record { kept: vec![process(11, 100)], ..record(ours) };
        assert_eq!(targets(&kept, &table, &[]), [process(10, 100)]);

        let mut table = table;
        table[1].runs_kept = true;
        assert_eq!(targets(&record(ours), &table, &[]), [process(10, 100)], "by its program as well");
    }
}
