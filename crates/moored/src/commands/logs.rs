//! `moored logs`: what a server wrote to its stderr, and what it writes from now on until it ends.

use std::collections::BTreeSet;
use std::path::PathBuf;

use moored_containment::ProcessIdentity;
use moored_supervisor::log::{Follow, tail};
use moored_supervisor::operator::{Named, Operator, find};

use super::history;
use crate::args::LogsArgs;
use crate::exit::{Exit, Failure};
use crate::render;

/// A log, and who writes it as long as he lives.
struct Log {
    path: PathBuf,
    writer: Option<ProcessIdentity>,
}

pub(super) fn run(args: &LogsArgs) -> Result<Exit, Failure> {
    let log = find_log(&super::operator(), &args.target)?;
    let unreadable =
        |error: std::io::Error| Failure::to(format_args!("read `{}`: {error}", log.path.display()));
    let (text, mut follow) = tail(&log.path, args.lines.unwrap_or(usize::MAX)).map_err(unreadable)?;
    render::raw(&text)?;
    if !args.follow {
        return Ok(Exit::Ok);
    }
    loop {
        // Looked at before the reading, so that its last words are not missed.
        let lives = log.writer.is_some_and(|writer| writer.is_alive().unwrap_or(true));
        render::raw(&follow.read().map_err(unreadable)?)?;
        if !lives {
            return Ok(Exit::Ok);
        }
        std::thread::sleep(Follow::REST);
    }
}

/// The newest of that name or id, those that are alive first.
fn find_log(operator: &Operator, target: &str) -> Result<Log, Failure> {
    let live = operator.look()?;
    let nobody = match find(&live, target) {
        Ok(found) => {
            return newest(target, &found, |one| {
                let path = one.details.log_file.as_ref().map(PathBuf::from);
                path.map(|path| Log { path, writer: Some(one.details.moored) })
            });
        }
        Err(nobody) => nobody,
    };
    let history = history(operator)?;
    let ended = history.ended(&BTreeSet::new())?;
    let found = find(&ended, target).map_err(|error| if live.is_empty() { error } else { nobody })?;
    newest(target, &found, |row| history.log_of(row).map(|path| Log { path, writer: None }))
}

/// The last one, which is the newest. Others of that name are told of.
fn newest<T: Named>(target: &str, found: &[&T], log_of: impl Fn(&T) -> Option<Log>) -> Result<Log, Failure> {
    let nothing = || Failure::to(format_args!("find a log of `{target}`: none is kept"));
    let (newest, others) = found.split_last().ok_or_else(nothing)?;
    if !others.is_empty() {
        let more = others.len();
        render::say(&format!("moored: the newest of `{target}`, {}; {more} more: moored ps -a", newest.id()));
    }
    log_of(newest).ok_or_else(nothing)
}
