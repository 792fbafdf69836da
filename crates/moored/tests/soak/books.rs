//! Whether what was written down is what happened.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::cast::{Moment, Part};
use crate::stage::Stage;

/// Everything in which history differs from what was played; empty if it is right.
pub(crate) fn faults(stage: &Stage, parts: &[Part]) -> Vec<String> {
    let rows = rows(stage);
    let events = events(stage);
    let none = Vec::new();
    let mut faults = Vec::new();
    for part in parts {
        let rows: &Vec<Value> = rows.get(&part.name).unwrap_or(&none);
        let events: &Vec<Value> = events.get(&part.name).unwrap_or(&none);
        if let Err(fault) = check_row(part, rows).and_then(|()| check_events(part, events)) {
            faults.push(format!("{fault}\n  of {part:?}\n  rows {rows:?}\n  events {events:#?}"));
        }
    }
    faults
}

/// What `ps -a` shows, by name.
fn rows(stage: &Stage) -> BTreeMap<String, Vec<Value>> {
    let shown: Value = serde_json::from_slice(&stage.moored(&["ps", "-a", "--json"]).stdout).expect("JSON");
    by(shown["servers"].as_array().expect("a list").iter().cloned(), "name")
}

/// What `events` tells, by the server's name, in its order.
fn events(stage: &Stage) -> BTreeMap<String, Vec<Value>> {
    let text = String::from_utf8(stage.moored(&["events", "--json"]).stdout).expect("text");
    by(text.lines().map(|line| serde_json::from_str(line).expect("JSON")), "server")
}

fn by(values: impl Iterator<Item = Value>, key: &str) -> BTreeMap<String, Vec<Value>> {
    let mut sorted: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for value in values {
        sorted.entry(value[key].as_str().unwrap_or_default().to_owned()).or_default().push(value);
    }
    sorted
}

/// Each `run` is there once, and has ended. One that was ended before it could say that it is there need not be.
fn check_row(part: &Part, rows: &[Value]) -> Result<(), String> {
    match rows {
        [] if part.moment == Moment::Early => Ok(()),
        [row] if row["state"] == "ended" => Ok(()),
        [row] => Err(format!("{}: {}", part.name, row["state"])),
        rows => Err(format!("{}: {} rows", part.name, rows.len())),
    }
}

/// It began once, and ended once, for a reason that fits; nothing of its trees was left, and nothing came after its end.
fn check_events(part: &Part, events: &[Value]) -> Result<(), String> {
    let named = |name: &str| events.iter().filter(|event| event["event"] == name).collect::<Vec<_>>();
    let (begun, ended, started) = (named("begun"), named("ended"), named("started"));
    if events.is_empty() && part.moment == Moment::Early {
        return Ok(());
    }
    let fault = |what: &str| Err(format!("{}: {what}", part.name));
    if begun.len() != 1 {
        return fault(&format!("begun {} times", begun.len()));
    }
    let [end] = ended[..] else { return fault(&format!("ended {} times", ended.len())) };
    let moored_was_killed = end["why"] == "moored-killed";
    if !part.ending.fits(part.moment, &end["why"]) {
        return fault(&format!("ended for {}", end["why"]));
    }
    if events.iter().any(|event| event["run"] != end["run"]) {
        return fault("two runs of one name");
    }
    // Whoever killed moored may have been faster than its history.
    if started.is_empty() && !moored_was_killed && part.moment != Moment::Early {
        return fault("never started");
    }
    if part.moment == Moment::Woken && !moored_was_killed && !started.iter().any(|e| e["why"] == "wake") {
        return fault("never woken");
    }
    if !moored_was_killed && events.last() != Some(end) {
        return fault("something came after the end");
    }
    for event in events {
        let left = event["report"]["survivors"].as_array().is_some_and(|left| !left.is_empty());
        if left || event["report"]["verified"] == false {
            return fault(&format!("not all was gone: {}", event["report"]));
        }
    }
    Ok(())
}
