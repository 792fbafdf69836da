//! What is on record of a session, and how it is written: a few lines of text, `key value`.
//!
//! Readers pass over keys that they do not know. This file owns the format only; the folder and the lock are
//! `runtime_dir`'s, and what to do about a dead session is `sweep`'s.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;
use std::time::Duration;

use crate::process::identity::{BootId, ProcessIdentity};
use crate::record::cookie::SessionId;

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Record {
    /// The session's id.
    pub id: SessionId,
    /// What its owner calls it.
    pub label: String,
    /// The process that started it.
    pub owner: ProcessIdentity,
    /// When it started, in clock ticks since boot: no process of the session is older.
    pub started_ticks: u64,
    /// The PID namespace in which the numbers of this record mean something.
    pub pid_namespace: u64,
    /// The cgroup leaf.
    pub leaf: Option<PathBuf>,
    /// What is to be run when it has ended.
    pub on_end: Vec<OsString>,
    /// How long that may take.
    pub on_end_patience: Duration,
    /// Programs that are meant to live on.
    pub keep: Vec<OsString>,
    /// The guardians and the server, once they exist.
    pub processes: Vec<ProcessIdentity>,
    /// Those that were meant to live on.
    pub kept: Vec<ProcessIdentity>,
    /// It has ended as it should, and stays on record for the sake of the kept ones.
    pub ended: bool,
}

impl Record {
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::from("moored-session 1\n");
        let mut line = |key: &str, value: &dyn std::fmt::Display| {
            // Writing to a string does not fail.
            let _ = writeln!(text, "{key} {value}");
        };
        line("id", &self.id);
        line("boot", &self.owner.boot);
        line("owner", &Pair(self.owner));
        line("started", &self.started_ticks);
        line("pidns", &self.pid_namespace);
        line("label", &escape(self.label.as_bytes()));
        if let Some(leaf) = &self.leaf {
            line("leaf", &escape(leaf.as_os_str().as_bytes()));
        }
        for arg in &self.on_end {
            line("on_end", &escape(arg.as_bytes()));
        }
        line("on_end_patience", &self.on_end_patience.as_millis());
        for rule in &self.keep {
            line("keep", &escape(rule.as_bytes()));
        }
        for process in &self.processes {
            line("process", &Pair(*process));
        }
        text
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        if lines.next() != Some("moored-session 1") {
            return None;
        }
        let (mut id, mut boot, mut owner, mut started, mut pidns) = (None, None, None, None, None);
        let mut label = String::new();
        let (mut leaf, mut on_end, mut processes, mut kept) = (None, Vec::new(), Vec::new(), Vec::new());
        let (mut keep, mut patience, mut ended) = (Vec::new(), None, false);
        for line in lines {
            let (key, value) = line.split_once(' ').unwrap_or((line, ""));
            match key {
                "id" => id = value.parse().ok(),
                "boot" => boot = value.parse().ok(),
                "owner" => owner = pair(value, boot?),
                "started" => started = value.parse().ok(),
                "pidns" => pidns = value.parse().ok(),
                "label" => label = String::from_utf8_lossy(&unescape(value)).into_owned(),
                "leaf" => leaf = Some(PathBuf::from(OsString::from_vec(unescape(value)))),
                "on_end" => on_end.push(OsString::from_vec(unescape(value))),
                "on_end_patience" => patience = value.parse().ok(),
                "keep" => keep.push(OsString::from_vec(unescape(value))),
                "process" => processes.extend(pair(value, boot?)),
                "kept" => kept.extend(pair(value, boot?)),
                "ended" => ended = true,
                // A later version's.
                _ => {}
            }
        }
        let record = Self {
            id: id?,
            label,
            owner: owner?,
            started_ticks: started?,
            pid_namespace: pidns?,
            leaf,
            on_end,
            on_end_patience: Duration::from_millis(patience?),
            keep,
            processes,
            kept,
            ended,
        };
        Some(record)
    }
}

/// How a process stands in a line: its boot is the record's.
pub(crate) struct Pair(pub(crate) ProcessIdentity);

impl std::fmt::Display for Pair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.0.pid, self.0.start_ticks)
    }
}

fn pair(text: &str, boot: BootId) -> Option<ProcessIdentity> {
    let (pid, ticks) = text.split_once(' ')?;
    Some(ProcessIdentity { pid: pid.parse().ok()?, start_ticks: ticks.parse().ok()?, boot })
}

/// Anything that could be taken for the end of a line, a blank or our own sign becomes `%XX`.
fn escape(bytes: &[u8]) -> String {
    let mut text = String::new();
    for byte in bytes {
        if byte.is_ascii_graphic() && *byte != b'%' {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02x}");
        }
    }
    text
}

fn unescape(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()).filter(|_| *first == b'%');
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        let me = ProcessIdentity::of(std::process::id()).expect("own identity");
        Record {
            id: SessionId::choose(None, 42),
            label: "a name\nwith %20 and\ttabs".into(),
            owner: me,
            started_ticks: 7,
            pid_namespace: 9,
            leaf: Some(PathBuf::from("/sys/fs/cgroup/x y")),
            on_end: vec!["docker".into(), OsString::from_vec(vec![0xff, b'\n', b' '])],
            on_end_patience: Duration::from_secs(3),
            keep: vec!["tmux".into(), "/opt/a b".into()],
            processes: vec![me],
            kept: Vec::new(),
            ended: false,
        }
    }

    #[test]
    fn a_record_is_read_back_whatever_bytes_it_holds() {
        let record = record();
        assert_eq!(Record::parse(&record.to_text()), Some(record));
    }

    #[test]
    fn half_a_record_is_none() {
        let text = record().to_text();
        let half = &text[..text.find("owner").expect("has an owner")];
        assert_eq!(Record::parse(half), None);
        assert_eq!(Record::parse("something else\n"), None);
    }
}
