//! What `refresh_daemon` and `rmcp_daemon` share: the command line, the line per refresh, and the figures of this process.

use std::fs;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use moored_containment::ProcessIdentity;
use rmcp::model::{CallToolRequestParams, JsonObject, Tool};
use serde_json::json;

pub(crate) type Problem = Box<dyn std::error::Error + Send + Sync>;

/// What was typed.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) refreshes: u64,
    pub(crate) in_flight: bool,
    /// How one generation gives way to the next: `replace`, `drop`, `panic`, or `runtime` (shut down first).
    pub(crate) by: String,
    /// How the daemon ends: `shutdown`, `drop`, `exit`, `panic`, `runtime`, or `hold` (to be killed).
    pub(crate) end: String,
    pub(crate) drain: Duration,
    /// The tool that is called, and its arguments; the first one that the server lists unless told otherwise.
    call: Option<(String, JsonObject)>,
    /// One JSON line per refresh on this process itself.
    stats: Option<PathBuf>,
    pub(crate) servers: Vec<Vec<String>>,
}

pub(crate) const USAGE: &str =
    "usage: refresh_daemon --refreshes N [--in-flight] [--end shutdown|drop|exit|panic|runtime|hold]
                      [--by replace|drop|panic|runtime] [--call 'TOOL JSON'] [--drain MS] [--stats FILE]
                      --server 'CMD ARG…' [--server …]";

impl Options {
    pub(crate) fn parse(args: impl Iterator<Item = String>) -> Result<Self, Problem> {
        let mut options = Self {
            refreshes: 0,
            in_flight: false,
            by: "replace".to_owned(),
            end: "shutdown".to_owned(),
            drain: Duration::from_secs(1),
            call: None,
            stats: None,
            servers: Vec::new(),
        };
        let mut args = args;
        while let Some(option) = args.next() {
            let mut value = || args.next().ok_or(format!("`{option}` needs a value"));
            match &*option {
                "--refreshes" => options.refreshes = value()?.parse()?,
                "--in-flight" => options.in_flight = true,
                "--by" => options.by = value()?,
                "--end" => options.end = value()?,
                "--drain" => options.drain = Duration::from_millis(value()?.parse()?),
                "--call" => options.call = Some(parse_call(&value()?)?),
                "--stats" => options.stats = Some(value()?.into()),
                "--server" => options.servers.push(shell_words::split(&value()?)?),
                other => return Err(format!("unknown option `{other}`\n{USAGE}").into()),
            }
        }
        let known_by = ["replace", "drop", "panic", "runtime"].contains(&&*options.by);
        let known_end = ["shutdown", "drop", "exit", "panic", "runtime", "hold"].contains(&&*options.end);
        if !known_by || !known_end || options.servers.is_empty() || options.servers.iter().any(Vec::is_empty)
        {
            return Err(USAGE.into());
        }
        Ok(options)
    }

    /// The call that is in flight during a refresh.
    pub(crate) fn call(&self, tools: &[Tool]) -> Option<CallToolRequestParams> {
        match &self.call {
            Some((tool, arguments)) => {
                Some(CallToolRequestParams::new(tool.clone()).with_arguments(arguments.clone()))
            }
            None => tools.first().map(|tool| CallToolRequestParams::new(tool.name.clone())),
        }
    }

    /// Says what there is after a refresh.
    pub(crate) fn report(&self, refresh: u64, count: Count, calls: Calls) -> Result<(), Problem> {
        let Count { alive, ended, survivors } = count;
        let expected = self.servers.len();
        // Written by hand, because the order of the keys is part of the contract.
        let line = format!(
            r#"{{"refresh":{refresh},"alive":{alive},"expected":{expected},"ended":{ended},"survivors":{survivors}}}"#
        );
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{line}").and_then(|()| stdout.flush())?;
        if let Some(path) = &self.stats {
            let mut file = fs::File::options().append(true).create(true).open(path)?;
            let Calls { answered, cut } = calls;
            let (fds, threads, rss_kb) = own_figures()?;
            let line = json!({ "refresh": refresh, "fds": fds, "threads": threads, "rss_kb": rss_kb,
                               "answered": answered, "cut": cut });
            writeln!(file, "{line}")?;
        }
        Ok(())
    }
}

/// What became of the calls in flight, so far.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) answered: u64,
    pub(crate) cut: u64,
}

/// Who is there after a refresh.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Count {
    pub(crate) alive: usize,
    pub(crate) ended: usize,
    pub(crate) survivors: usize,
}

/// Every process that was ever started.
#[derive(Debug, Default)]
pub(crate) struct Everybody {
    earlier: Vec<ProcessIdentity>,
    present: Vec<ProcessIdentity>,
}

impl Everybody {
    /// These are the new generation; what was present is earlier now. How many of those have ended is what is counted.
    pub(crate) fn refreshed(&mut self, generation: Vec<ProcessIdentity>) -> io::Result<Count> {
        let before = self.present.len();
        let still_there = alive(&self.present)?.len();
        self.earlier.append(&mut self.present);
        self.present = generation;
        // The dead stay dead.
        self.earlier = alive(&self.earlier)?;
        let survivors = self.earlier.len();
        Ok(Count { alive: survivors + alive(&self.present)?.len(), ended: before - still_there, survivors })
    }
}

fn alive(processes: &[ProcessIdentity]) -> io::Result<Vec<ProcessIdentity>> {
    let mut alive = Vec::new();
    for process in processes {
        if process.is_alive()? {
            alive.push(*process);
        }
    }
    Ok(alive)
}

fn parse_call(text: &str) -> Result<(String, JsonObject), Problem> {
    let (tool, arguments) = text.split_once(' ').unwrap_or((text, "{}"));
    Ok((tool.to_owned(), serde_json::from_str(arguments)?))
}

/// Open files, threads, and resident memory of this process.
fn own_figures() -> io::Result<(usize, u64, u64)> {
    let status = fs::read_to_string("/proc/self/status")?;
    let number = |key: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    };
    Ok((fs::read_dir("/proc/self/fd")?.count(), number("Threads:"), number("VmRSS:")))
}
