//! `moored events`: what happened, a line each.

use std::time::Duration;

use jiff::Timestamp;
use moored_containment::{EndReport, ServerExit};
use moored_operator::cause;
use moored_supervisor::event::{Ended, Event, SleepReason, StartReason, Started, What};
use moored_supervisor::ledger::EventQuery;

use super::say_all;
use crate::args::{EventsArgs, duration};
use crate::exit::{Exit, Failure};
use crate::render;

/// Between two looks for what is new. Only this process wakes for it.
const REST: Duration = Duration::from_millis(250);

pub(super) fn run(args: &EventsArgs) -> Result<Exit, Failure> {
    let since = args.since.as_deref().map(begin).transpose()?;
    let mut history = super::operator().history()?;
    say_all(&history.warnings);
    let mut query = EventQuery { since, ..EventQuery::default() };
    loop {
        for stored in history.events(&query)? {
            if args.json {
                render::json_line(&stored)?;
            } else {
                render::out(&event_line(&stored.event))?;
            }
            query.after_id = Some(stored.id);
        }
        if !args.follow {
            return Ok(Exit::Ok);
        }
        std::thread::sleep(REST);
    }
}

/// So long ago, by the wall clock, which is what events are written down with.
fn begin(since: &str) -> Result<Timestamp, Failure> {
    let wrong = |why: &str| Failure::usage(format_args!("invalid value `{since}` for `--since`: {why}"));
    let ago = duration(since).map_err(|why| wrong(&why))?;
    Timestamp::now().checked_sub(ago).map_err(|_| wrong("there was no time then"))
}

/// One event as a line.
pub(super) fn event_line(event: &Event) -> String {
    let (word, facts) = told(&event.what);
    // To the second: the JSON has the rest.
    let at = Timestamp::from_second(event.at.as_second()).unwrap_or(event.at);
    let line = format!("{at}  {}  {}  {word}", event.run, event.server);
    let line = if facts.is_empty() { line } else { format!("{line}  {facts}") };
    let line: String = line.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    line + "\n"
}

/// The word for it, as in the JSON, and what else there is to say.
fn told(what: &What) -> (&'static str, String) {
    match what {
        What::Begun(begun) => ("begun", render::command_line(&begun.command, 100)),
        What::Started(started) => ("started", started_facts(started)),
        What::Initialized { server_name, server_version } => {
            let name = server_name.as_deref().unwrap_or("no name");
            (
                "initialized",
                format!("{name} {}", server_version.as_deref().unwrap_or_default()).trim_end().to_owned(),
            )
        }
        What::Hibernated { why, report } => {
            ("hibernated", format!("{}; {}", sleep_word(*why), report_facts(report)))
        }
        What::Restarting { attempt, after_ms, exit } => {
            let how = exit.map_or("it is not known how it ended".to_owned(), exit_word);
            (
                "restarting",
                format!("{how}; attempt {attempt}, in {}", render::span(*after_ms as f64 / 1000.0)),
            )
        }
        What::Swept { session, ended, survivors } => {
            ("swept", format!("session {session}: {ended} ended, {survivors} still there"))
        }
        What::Warned { message } => ("warned", message.clone()),
        What::Ended(ended) => ("ended", ended_facts(ended)),
        // A later version's.
        _ => ("other", String::new()),
    }
}

fn started_facts(started: &Started) -> String {
    let why = match started.why {
        StartReason::First => "first",
        StartReason::Wake => "woken",
        StartReason::Restart => "restarted",
    };
    let layers: Vec<String> = started.strength.layers.iter().map(ToString::to_string).collect();
    format!("{why}; pid {}, held by {}", started.process.pid, layers.join(", "))
}

fn sleep_word(why: SleepReason) -> &'static str {
    match why {
        SleepReason::Idle => "idle",
        SleepReason::Superseded => "superseded",
        SleepReason::OverLimit => "over the limit",
        SleepReason::Lifetime => "lifetime",
        SleepReason::Operator => "by an operator",
    }
}

fn ended_facts(ended: &Ended) -> String {
    let code = ended.exit_code.map_or(String::new(), |code| format!("; exit code {code}"));
    let report = ended.report.as_ref().map_or(String::new(), |report| format!("; {}", report_facts(report)));
    format!("{}{code}{report}", cause(ended.why))
}

fn report_facts(report: &EndReport) -> String {
    let took = render::span(report.took.as_secs_f64());
    match report.survivors.len() {
        0 if report.verified => format!("gone in {took}, verified"),
        0 => format!("gone in {took}, not verified"),
        left => format!("{left} still there after {took}"),
    }
}

fn exit_word(exit: ServerExit) -> String {
    match exit {
        ServerExit::Code(code) => format!("exited with {code}"),
        ServerExit::Signal(signal) => format!("died by signal {signal}"),
    }
}
