//! The record's life, beside the session's.

use std::fs;

use moored_containment::{Command, Findable, Ladder, Recording, RuntimeDir, Stdio};
use moored_testkit::{Scratch, User};

use crate::common::ending::Ending;
use crate::common::hold::cells;
use crate::common::host::Plan;
use crate::common::traces::{assert_nothing_left, records, values};

/// The server itself looks, before it does anything else.
#[test]
fn the_record_is_there_and_locked_before_the_server_runs() {
    for cell in cells() {
        let look = r#"cd "$1/run"; ls *.session >"$1/seen"; cat *.session >"$1/said"
            flock --nonblock *.session true && echo free >"$1/lock" || echo held >"$1/lock"
            touch "$1/ready"; exec cat"#;
        let mut host = Plan::new(cell, Ending::End).script(look).start();
        let said = |file: &str| fs::read_to_string(host.scratch.join(file)).expect("the server's words");
        assert_eq!(said("lock"), "held\n", "{cell:?}");
        let [record] = &records(&host.runtime())[..] else { panic!("{cell:?}") };
        assert_eq!(said("seen").trim(), record.file_name().expect("a name").to_string_lossy());
        assert!(said("said").starts_with("moored-session 1\nid "), "{cell:?}: {}", said("said"));
        assert!(said("said").contains("\nlabel sh\n"), "{cell:?}: {}", said("said"));

        let who = host.who();
        assert_eq!(values(record, "owner"), [format!("{} {}", who.host.pid, who.host.start_ticks)]);
        let started = values(record, "process");
        let pids: Vec<_> = started.iter().map(|line| line.split(' ').next().expect("a pid")).collect();
        assert_eq!(pids, [who.outer.pid, who.inner.pid, who.server].map(|pid| pid.to_string()), "{cell:?}");
        assert!(started[0].ends_with(&who.outer.start_ticks.to_string()), "{started:?}");
        assert_eq!(values(record, "leaf").is_empty(), host.group.is_none(), "{cell:?}");
        host.bring_end();
        assert_nothing_left(&mut host);
    }
}

#[test]
fn the_folder_lists_live_sessions_by_label_and_forgets_ended_ones() {
    let scratch = Scratch::for_user(User::current());
    let folder = RuntimeDir::at(scratch.join("run")).expect("a new folder");
    let start = |label: &str| {
        let mut command = Command::new("cat");
        command.stdin(Stdio::Pipe).stdout(Stdio::Null).label(label).recording(Recording::In(folder.clone()));
        command.spawn().expect("cat")
    };
    let mut sessions = ["one", "a name\nwith lines", "%41"].map(start);
    let labels = || {
        let found = folder.sessions().expect("a folder");
        let mut labels: Vec<_> = found.into_iter().map(|found| found.record.label).collect();
        labels.sort();
        labels
    };
    assert_eq!(labels(), ["%41", "a name\nwith lines", "one"]);
    for mut found in folder.sessions().expect("a folder") {
        assert!(!found.claim().expect("a lock"), "a guardian holds it");
        let session = sessions.iter().find(|s| s.id() == found.record.id).expect("one of ours");
        let [outer, inner] = session.guardians();
        assert_eq!(found.record.processes, [outer, inner, session.identity()]);
        assert_eq!(session.strength().findable, Findable::ByCookie);
    }
    sessions[0].end(Ladder::default()).expect("a report");
    assert_eq!(labels(), ["%41", "a name\nwith lines"]);
    drop(sessions);
    assert!(labels().is_empty());
}

#[test]
fn a_session_that_is_not_written_down_says_so_and_ends_as_well() {
    let mut command = Command::new("cat");
    let mut server = command.stdin(Stdio::Pipe).recording(Recording::Off).spawn().expect("cat");
    assert_eq!(server.strength().findable, Findable::No);
    let report = server.end(Ladder::default()).expect("a report");
    assert!(report.verified && report.strength.findable == Findable::No);
}
