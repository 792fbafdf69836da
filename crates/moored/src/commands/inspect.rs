//! `moored inspect`: all that is known of one server.

use std::collections::BTreeSet;

use moored_supervisor::ledger::{EventQuery, RunRow, StoredEvent};
use moored_supervisor::operator::{Details, Named, Operator, ServerRow, find};
use serde::Serialize;

use super::events::event_line;
use super::history;
use super::ps::{process_tree, state_word, verdict_word};
use crate::args::InspectArgs;
use crate::exit::{Exit, Failure, tell};
use crate::render::{self, STRONG, paint};

/// A server, with its details where it is alive, and what was written down of it.
#[derive(Serialize)]
struct Inspected {
    #[serde(flatten)]
    row: ServerRow,
    #[serde(flatten)]
    details: Option<Details>,
    record: Option<RunRow>,
    events: Vec<StoredEvent>,
}

pub(super) fn run(args: &InspectArgs) -> Result<Exit, Failure> {
    let operator = super::operator();
    let inspected = inspect(&operator, &args.target)?;
    if args.json {
        render::json("server", &inspected)?;
    } else {
        render::out(&text(&inspected))?;
    }
    Ok(Exit::Ok)
}

fn inspect(operator: &Operator, target: &str) -> Result<Inspected, Failure> {
    let live = operator.look()?;
    let nobody = match find(&live, target) {
        Ok(found) => {
            let one = only(target, &found)?;
            let (record, events) = written_down(operator, &one.row);
            return Ok(Inspected {
                row: one.row.clone(),
                details: Some(one.details.clone()),
                record,
                events,
            });
        }
        Err(nobody) => nobody,
    };
    let ended = history(operator)?.ended(&BTreeSet::new())?;
    // What lives is what was looked for first, so its names are the ones to suggest.
    let found = find(&ended, target).map_err(|error| if live.is_empty() { error } else { nobody })?;
    let row = only(target, &found)?.clone();
    let (record, events) = written_down(operator, &row);
    Ok(Inspected { row, details: None, record, events })
}

/// What history has of it. What is alive is shown without it too.
fn written_down(operator: &Operator, row: &ServerRow) -> (Option<RunRow>, Vec<StoredEvent>) {
    let read = || {
        let mut history = history(operator)?;
        let Ok(run) = row.id.parse() else { return Ok((None, Vec::new())) };
        let query = EventQuery { run: Some(run), ..EventQuery::default() };
        Ok::<_, Failure>((history.run(run)?, history.events(&query)?))
    };
    read().unwrap_or_else(|failure| {
        tell(&failure);
        (None, Vec::new())
    })
}

/// One of a name can be shown; of several, the ids are.
fn only<'a, T: Named>(target: &str, found: &[&'a T]) -> Result<&'a T, Failure> {
    if let [one] = found {
        return Ok(one);
    }
    let ids: Vec<&str> = found.iter().map(|one| one.id()).collect();
    Err(Failure::to(format_args!("choose: {} servers are called `{target}`", ids.len()))
        .hint(format_args!("give one of the ids: {}", ids.join(", "))))
}

fn text(inspected: &Inspected) -> String {
    let row = &inspected.row;
    let mut lines = vec![
        ("id", row.id.clone()),
        ("name", row.name.clone()),
        ("state", state_word(row.state).to_owned()),
        ("verdict", format!("{}: {}", verdict_word(row.verdict), row.reason)),
        ("command", render::command_line(&row.command, usize::MAX)),
        ("cwd", row.cwd.clone()),
        ("started", format!("{} ({})", row.started_at, render::ago(row.uptime_seconds))),
    ];
    let mut add = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    add("ended", row.ended_at.map(|at| at.to_string()));
    add("exit code", row.exit_code.map(|code| code.to_string()));
    add("client", row.client.as_ref().map(|client| format!("{} ({})", client.name, client.pid)));
    add("version", row.server_version.clone());
    let layers: Vec<String> = row.containment.layers.iter().map(ToString::to_string).collect();
    add("held by", Some(format!("{} ({})", row.containment.strength, layers.join(", "))));
    add("last activity", row.last_activity_at.map(|at| at.to_string()));
    if let Some(details) = &inspected.details {
        lines.extend(detail_lines(details));
    }
    let width = lines.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    let mut text: String = lines
        .iter()
        .map(|(name, value)| format!("{}  {value}\n", paint(STRONG, &format!("{name:width$}"))))
        .collect();
    let totals = format!("{}, cpu {}", render::bytes(row.rss_bytes), render::percent(row.cpu_percent));
    text.push_str(&format!("{} {} ({totals})\n", paint(STRONG, "processes"), row.processes.len()));
    text.push_str(&process_tree(row));
    if !inspected.events.is_empty() {
        text.push_str(&format!("{}\n", paint(STRONG, "events")));
        text.extend(inspected.events.iter().map(|stored| format!("  {}", event_line(&stored.event))));
    }
    text
}

fn detail_lines(details: &Details) -> Vec<(&'static str, String)> {
    let mut lines = vec![("moored", details.moored.pid.to_string())];
    let mut add = |name, value: Option<String>| lines.extend(value.map(|value| (name, value)));
    let guardians: Vec<String> = details.guardians.iter().map(|guardian| guardian.pid.to_string()).collect();
    add("guardians", (!guardians.is_empty()).then(|| guardians.join(", ")));
    add("session", details.session.map(|session| session.to_string()));
    add("in flight", details.in_flight.map(|count| count.to_string()));
    add("subscriptions", details.subscriptions.map(|count| count.to_string()));
    add(
        "messages",
        details.counters.map(|c| format!("{} in, {} out", c.messages_to_server, c.messages_to_client)),
    );
    add("wakes, restarts", details.counters.map(|c| format!("{}, {}", c.wakes, c.restarts)));
    add("stale", details.newer.clone());
    add("max instances", details.max_instances.map(|count| count.to_string()));
    add("log", details.log_file.clone());
    add("pid file", details.pid_file.clone());
    lines
}
