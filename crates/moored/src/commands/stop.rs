//! `moored stop`: ends servers by their ladders, all at once, and says of each what became of it.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;

use moored_operator::{Live, StopOutcome, Stopped, find};

use crate::args::StopArgs;
use crate::exit::{Exit, Failure};
use crate::render::{self, BAD, GOOD, paint};

pub(super) fn run(args: &StopArgs) -> Result<Exit, Failure> {
    let live = super::operator().look()?;
    let chosen = if args.all { live.iter().collect() } else { chosen(&live, &args.targets)? };
    if chosen.is_empty() && !args.json {
        render::say("moored: no server is running");
        return Ok(Exit::Ok);
    }
    if chosen.len() > 1 && std::io::stderr().is_terminal() {
        render::say(&format!("ending {} servers …", chosen.len()));
    }
    let mut written = Ok(());
    let stopped = Live::stop_all(&chosen, |one| {
        // Each is told of when it is known; a reader that left does not keep the others alive.
        if !args.json && written.is_ok() {
            written = render::out(&line(one));
        }
    });
    if args.json {
        written = render::json("stopped", &stopped);
    }
    let exit = if stopped.iter().all(Stopped::is_gone) { Exit::Ok } else { Exit::Failure };
    written?;
    Ok(exit)
}

/// All that are meant, each once. If one of the names means no server, none is stopped.
fn chosen<'a>(live: &'a [Live], targets: &[String]) -> Result<Vec<&'a Live>, Failure> {
    let mut seen = BTreeSet::new();
    let mut chosen = Vec::new();
    for target in targets {
        chosen.extend(find(live, target)?.into_iter().filter(|one| seen.insert(&one.row.id)));
    }
    Ok(chosen)
}

fn line(one: &Stopped) -> String {
    let what = match &one.outcome {
        StopOutcome::Ended { report } => {
            let took = render::span(one.took_ms as f64 / 1000.0);
            match report {
                None => format!("ended in {took}, had no processes"),
                Some(report) if report.verified => format!("ended in {took}, verified"),
                Some(_) => format!("ended in {took}, not verified"),
            }
        }
        StopOutcome::Refused { reason } => format!("refused: {reason}"),
        StopOutcome::Failed { reason } => {
            format!("failed: {reason} (SIGKILL to its moored, pid {}, ends all of it)", one.moored_pid)
        }
    };
    let left =
        if one.survivors.is_empty() { String::new() } else { format!("; still there: {:?}", one.survivors) };
    let style = if one.is_gone() { GOOD } else { BAD };
    format!("{}  {}  {}\n", one.id, one.name, paint(style, &format!("{what}{left}")))
}
