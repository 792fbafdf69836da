//! `moored logs`: what a server wrote to its stderr, and what it writes from now on until it ends.

use moored_supervisor::log::{Follow, tail};

use super::say_all;
use crate::args::LogsArgs;
use crate::exit::{Exit, Failure};
use crate::render;

pub(super) fn run(args: &LogsArgs) -> Result<Exit, Failure> {
    let log = super::operator().log_of(&args.target)?;
    say_all(&log.warnings);
    if log.older > 0 {
        let (target, newest, more) = (&args.target, &log.id, log.older);
        render::say(&format!("moored: the newest of `{target}`, {newest}; {more} more: moored ps -a"));
    }
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
