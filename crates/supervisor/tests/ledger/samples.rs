//! Events to write down.

use jiff::Timestamp;
use moored_containment::{EndReport, ProcessIdentity, Strength};
use moored_supervisor::event::{
    Begun, Counters, EndCause, Ended, Event, RunId, SleepReason, StartReason, Started, What,
};
use serde_json::json;

pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).expect("a time")
}

pub(crate) fn us() -> ProcessIdentity {
    ProcessIdentity::of(std::process::id()).expect("us")
}

/// A process of a boot that is over.
pub(crate) fn dead() -> ProcessIdentity {
    format!("7:7@{:032x}", 7).parse().expect("an identity")
}

pub(crate) fn event(run: RunId, seconds: i64, what: What) -> Event {
    Event { at: at(seconds), run, server: "srv".into(), what }
}

pub(crate) fn begun(moored: ProcessIdentity) -> What {
    What::Begun(Begun {
        moored,
        moored_version: "0.1.0".into(),
        command: vec!["srv".into(), "--token".into(), "***".into()],
        cwd: "/home/u".into(),
        client: None,
        log_file: None,
    })
}

pub(crate) fn started(why: StartReason) -> What {
    let strength: Strength =
        serde_json::from_value(json!({"strength": "loop", "layers": ["guardian"], "findable": "by-cookie"}))
            .expect("a strength");
    let session = report().session;
    What::Started(Started { session, process: dead(), strength, why })
}

pub(crate) fn report() -> EndReport {
    serde_json::from_value(json!({
        "session": "2000000000000001", "reason": "requested", "status": {"code": 3},
        "steps": [{"name": "close", "took_ms": 1.25}], "ended": {"eof": 1, "term": 0, "kill": 2},
        "kept": [], "survivors": [], "strength": "loop", "layers": ["guardian"], "findable": "by-cookie",
        "verified": true, "proof": ["no-children"], "on_end": null, "took_ms": 12.5
    }))
    .expect("a report")
}

pub(crate) fn hibernated() -> What {
    What::Hibernated { why: SleepReason::Idle, report: report() }
}

pub(crate) fn ended(why: EndCause) -> What {
    let counters = Counters { bytes_to_server: 10, messages_to_client: 2, ..Counters::default() };
    What::Ended(Ended { why, exit_code: Some(3), counters, report: Some(report()) })
}

pub(crate) fn warned(message: impl Into<String>) -> What {
    What::Warned { message: message.into() }
}

/// A whole life that began at this second.
pub(crate) fn life(run: RunId, seconds: i64) -> Vec<Event> {
    vec![
        event(run, seconds, begun(dead())),
        event(run, seconds + 1, started(StartReason::First)),
        event(run, seconds + 2, ended(EndCause::ClientEof)),
    ]
}
