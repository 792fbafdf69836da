//! `moored inspect`: all that is known of one server.

use moored_operator::{Details, Inspected};

use super::events::event_line;
use super::ps::{process_tree, state_word, verdict_word};
use super::say_all;
use crate::args::InspectArgs;
use crate::exit::{Exit, Failure, tell};
use crate::render::{self, STRONG, paint};

pub(super) fn run(args: &InspectArgs) -> Result<Exit, Failure> {
    let inspected = super::operator().inspect(&args.target)?;
    say_all(&inspected.warnings);
    if let Some(error) = &inspected.unread {
        tell(&Failure::to(error));
    }
    if args.json {
        render::json("server", &inspected)?;
    } else {
        render::out(&text(&inspected))?;
    }
    Ok(Exit::Ok)
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
