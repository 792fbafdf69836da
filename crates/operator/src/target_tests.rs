//! One server that is alive, by its real place in the runtime folder, and two that have ended, by a history in memory.

use std::sync::Arc;

use jiff::Timestamp;
use moored_containment::RuntimeDir;
use moored_registry::boot_time::millis_since_boot;
use moored_registry::control::RunState;
use moored_registry::{Origin, RunInfo, RunRegistration};
use moored_supervisor::event::{Begun, Counters, EndCause, Ended, Event, RunId, What};
use moored_supervisor::ledger::{Ledger as _, MemoryStore};
use moored_supervisor::places::StateDir;
use moored_testkit::{Scratch, User};

use super::*;
use crate::Which;

struct Scene {
    operator: Operator,
    alive: RunId,
    ended: [RunId; 2],
    _registration: RunRegistration,
    scratch: Scratch,
}

fn us() -> ProcessIdentity {
    ProcessIdentity::of(std::process::id()).expect("us")
}

/// `new` lives; `old` has ended twice, and the second time kept its log elsewhere.
fn scene() -> Scene {
    let scratch = Scratch::for_user(User::current());
    let folder = RuntimeDir::at(scratch.join("run")).expect("a folder");
    let [alive, first, second] =
        [1, 2, 3].map(|second| format!("01J0000000000000000000000{second}").parse::<RunId>().expect("an id"));
    let mut history = MemoryStore::default();
    history.record(&[life(first, None), life(second, Some("/l/old.log"))].concat()).expect("recorded");
    let facts = RunInfo {
        run: alive,
        moored: us(),
        moored_version: "0".into(),
        name: "new".into(),
        command: vec!["srv".into()],
        cwd: "/".into(),
        server_key: serde_json::from_str("1").expect("a key"),
        entry_key: serde_json::from_str("2").expect("a key"),
        client: None,
        client_holds_stdin: true,
        origin: Origin::Run,
        began_ms: Some(millis_since_boot()),
        session: None,
        started_at: Timestamp::UNIX_EPOCH,
        log_file: Some("/l/new.log".into()),
        pid_file: None,
        max_instances: None,
    };
    let registration = RunRegistration::take(&folder, &facts).expect("a place");
    let state = StateDir::at(scratch.join("state"));
    let operator = Operator::at(folder).with_history(Arc::new(history), state);
    Scene { operator, alive, ended: [first, second], _registration: registration, scratch }
}

fn life(run: RunId, log_file: Option<&str>) -> Vec<Event> {
    let begun = What::Begun(Begun {
        moored: ProcessIdentity { start_ticks: 1, ..us() },
        moored_version: "0".into(),
        command: vec!["srv".into()],
        cwd: "/".into(),
        client: None,
        log_file: log_file.map(Into::into),
    });
    let ended = What::Ended(Ended {
        why: EndCause::ClientEof,
        exit_code: Some(0),
        counters: Counters::default(),
        report: None,
    });
    [begun, ended].map(|what| Event { at: Timestamp::UNIX_EPOCH, run, server: "old".into(), what }).into()
}

#[test]
fn a_list_of_all_has_what_has_ended_before_what_lives() {
    let scene = scene();
    let ids = |which| -> Vec<String> {
        let listing = scene.operator.list(which).expect("a list");
        listing.rows.into_iter().map(|row| row.id).collect()
    };
    assert_eq!(ids(Which::Alive), [scene.alive.to_string()]);
    let [first, second] = scene.ended;
    assert_eq!(ids(Which::All), [first, second, scene.alive].map(|run| run.to_string()));
}

#[test]
fn what_lives_is_inspected_with_its_details_and_what_has_ended_with_its_events() {
    let scene = scene();
    let inspected = scene.operator.inspect("new").expect("it lives");
    assert_eq!(inspected.details.map(|details| details.moored), Some(us()));
    assert!(inspected.record.is_none() && inspected.events.is_empty() && inspected.unread.is_none());
    let inspected = scene.operator.inspect(&scene.ended[0].to_string()).expect("it is written down");
    assert_eq!((inspected.row.state, inspected.events.len()), (RunState::Ended, 2));
    assert!(inspected.details.is_none() && inspected.record.is_some());
}

#[test]
fn one_of_a_name_is_shown_and_of_several_the_ids_are() {
    let scene = scene();
    let error = scene.operator.inspect("old").expect_err("there are two");
    let both = scene.ended.map(|run| run.to_string());
    assert!(matches!(&error, TargetError::Several { ids, .. } if *ids == both), "{error:?}");
    assert_eq!(error.to_string(), "choose: 2 servers are called `old`");
    let error = scene.operator.inspect("nobody").expect_err("there is none");
    assert!(matches!(&error, TargetError::Find(FindError::NotFound { known, .. }) if known == &["new"]));
}

#[test]
fn a_log_is_where_its_run_said_or_else_where_logs_are() {
    let scene = scene();
    let log = scene.operator.log_of("new").expect("a log");
    assert_eq!((log.path, log.writer, log.older), ("/l/new.log".into(), Some(us()), 0));
    let newest = scene.operator.log_of("old").expect("a log");
    assert_eq!((newest.id, newest.path), (scene.ended[1].to_string(), "/l/old.log".into()));
    assert_eq!((newest.writer, newest.older), (None, 1));
    let usual = scene.operator.log_of(&scene.ended[0].to_string()).expect("a log");
    let usual_place = scene.scratch.join("state").join(format!("logs/old/{}.log", scene.ended[0]));
    assert_eq!(usual.path, usual_place);
}
