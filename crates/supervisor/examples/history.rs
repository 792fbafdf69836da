//! Writes the history of one `run`: `history STATE SPOOL PATIENCE_MS [hold]`. Prints the id of the run at once, and how the
//! writing ended at the end, as two lines of JSON. With `hold` it stays alive between the two until its input ends.

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use moored_containment::ProcessIdentity;
use moored_supervisor::event::{Begun, Counters, EndCause, Ended, Event, RunId, What};
use moored_supervisor::ledger::{SqliteStore, Writer};
use moored_supervisor::places::StateDir;

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args_os().skip(1);
    let (Some(state), Some(spool)) = (args.next(), args.next()) else {
        return Err("usage: history STATE SPOOL PATIENCE_MS [hold]".into());
    };
    let patience = args.next().and_then(|millis| millis.to_str()?.parse().ok()).unwrap_or(10_000);
    let run = RunId::generate();
    let writer = Writer::start(SqliteStore::at(StateDir::at(state)), PathBuf::from(spool));
    let say = |what| writer.send(Event { at: Timestamp::now(), run, server: "history".into(), what });
    say(What::Begun(Begun {
        moored: ProcessIdentity::of(std::process::id())?,
        moored_version: env!("CARGO_PKG_VERSION").into(),
        command: vec!["true".into()],
        cwd: std::env::current_dir()?,
        client: None,
        log_file: None,
    }));
    writeln!(io::stdout(), "{}", serde_json::json!({ "run": run }))?;
    if args.next().is_some_and(|word| word == "hold") {
        io::stdin().read_to_end(&mut Vec::new())?;
    }
    say(What::Ended(Ended {
        why: EndCause::ClientEof,
        exit_code: Some(0),
        counters: Counters::default(),
        report: None,
    }));
    let outcome = writer.finish(Duration::from_millis(patience));
    writeln!(
        io::stdout(),
        "{}",
        serde_json::json!({ "spooled": outcome.spooled, "warning": outcome.warning })
    )?;
    Ok(())
}
