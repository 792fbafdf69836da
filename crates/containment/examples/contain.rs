//! Runs a command contained, with our own stdio, and reports how it ended.
//!
//! `contain [--sealed] [--strict] [--no-cgroup] [--keep PROGRAM]… [--grace 2s] [--kill-after 2s] -- CMD [ARG…]`
//!
//! The tree is ended at the end of stdin, at SIGTERM, SIGINT or SIGHUP, or when CMD exits. One JSON line on stderr is the
//! report; the exit code is CMD's own, 128 + n if it died by signal n, 127 if it was not found, 126 if it could not be
//! executed, 125 if it could not be contained, 2 if the command line makes no sense.
#![expect(clippy::print_stderr, reason = "a program's own words; stdout belongs to CMD")]

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;

use moored_containment::{Command, EndError, EndReport, Ladder, Layer, Rung, RuntimeDir, Use, aio, sweep};
use rustix::event::{PollFd, PollFlags, poll};
use tokio::signal::unix::{Signal, SignalKind, signal};

const USAGE: &str = "usage: contain [--sealed] [--strict] [--no-cgroup] [--no-guardian] [--keep PROGRAM]… [--grace 2s] \
                     [--kill-after 2s] [--on-end SHELL-COMMAND] -- CMD [ARG…]";

fn main() -> ExitCode {
    let (mut command, ladder) = match parse(std::env::args_os().skip(1)) {
        Ok(parsed) => parsed,
        Err(problem) => {
            eprintln!("contain: {problem}\n\nhint: {USAGE}");
            return ExitCode::from(2);
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = runtime.map_err(|error| (125, error.to_string())).and_then(|runtime| {
        runtime.block_on(async {
            sweep_first();
            // Before anything is started: from here on a signal is an ending, not our death.
            let told = Signals::listen().map_err(|error| (125, error.to_string()))?;
            let server = command.spawn_async().map_err(|error| (error.exit_code(), with_cause(&error)))?;
            run(server, ladder, told).await.map_err(|error| (125, with_cause(&error)))
        })
    });
    match ended {
        Ok(report) => {
            eprintln!("{}", serde_json::to_string(&report).unwrap_or_default());
            let code = report.status.map_or(125, |status| status.exit_code());
            ExitCode::from(u8::try_from(code).unwrap_or(125))
        }
        Err((code, problem)) => {
            eprintln!("contain: {problem}");
            ExitCode::from(u8::try_from(code).unwrap_or(125))
        }
    }
}

fn with_cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// What a crash of everything left is found at the next start.
fn sweep_first() {
    for swept in RuntimeDir::all_of_user().iter().filter_map(|folder| sweep(folder).ok()) {
        for session in swept.sessions.iter().filter(|s| !s.ended.is_empty()) {
            eprintln!(
                "contain: swept {} processes that session {} left",
                session.ended.len(),
                session.session
            );
        }
    }
}

async fn run(mut server: aio::Contained, ladder: Ladder, mut told: Signals) -> Result<EndReport, EndError> {
    let mut from = tokio::select! {
        report = server.wait_ended() => return report,
        () = told.any() => Rung::Terminate,
        () = end_of_stdin() => Rung::Close,
    };
    loop {
        tokio::select! {
            report = server.end(Ladder { from, ..ladder }) => return report,
            // Somebody is in a hurry: one rung further.
            () = told.any() => from = if from == Rung::Close { Rung::Terminate } else { Rung::Kill },
        }
    }
}

struct Signals([Signal; 3]);

impl Signals {
    fn listen() -> std::io::Result<Self> {
        let on = |kind| signal(kind);
        Ok(Self([on(SignalKind::terminate())?, on(SignalKind::interrupt())?, on(SignalKind::hangup())?]))
    }

    async fn any(&mut self) {
        let [term, int, hup] = &mut self.0;
        tokio::select! { _ = term.recv() => {}, _ = int.recv() => {}, _ = hup.recv() => {} }
    }
}

/// Until whoever writes to our stdin is gone. CMD reads it, so we only watch; a file or a terminal never ends that way.
async fn end_of_stdin() {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        // Not for data, only for the other end being closed, wholly or (a socket) for writing.
        let stdin = std::io::stdin();
        let mut fds = [PollFd::new(&stdin, PollFlags::RDHUP)];
        while poll(&mut fds, None).is_err() {}
        // Nobody listens any more if CMD ended first.
        let _ = tell.send(());
    });
    let _ = told.await;
}

// === the command line ===

fn parse(args: impl Iterator<Item = OsString>) -> Result<(Command, Ladder), String> {
    let args: Vec<OsString> = args.collect();
    let at = args.iter().position(|arg| arg == "--").ok_or("no `--` before the command")?;
    let (options, rest) = (&args[..at], &args[at + 1..]);
    let (program, rest) = rest.split_first().ok_or("no command after `--`")?;
    let mut command = Command::new(program);
    let mut ladder = Ladder::default();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let option = option.to_string_lossy();
        let mut value = || options.next().ok_or(format!("`{option}` needs a value"));
        match option.as_ref() {
            "--sealed" => command.sealed(),
            "--strict" => command.strict(),
            "--no-cgroup" => command.layer(Layer::Cgroup, Use::Off),
            "--no-guardian" => command.layer(Layer::Guardian, Use::Off),
            "--keep" => command.keep(value()?),
            "--on-end" => command.on_end([OsStr::new("sh"), OsStr::new("-c"), value()?]),
            "--grace" => {
                ladder.grace = duration(&value()?.to_string_lossy())?;
                &mut command
            }
            "--kill-after" => {
                ladder.kill_after = duration(&value()?.to_string_lossy())?;
                &mut command
            }
            other => return Err(format!("unknown option `{other}`")),
        };
    }
    command.args(rest).ladder(ladder);
    Ok((command, ladder))
}

/// `2s`, `500ms`, `1m`, or a bare number of seconds.
fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "" | "s" => 1.0,
        "ms" => 0.001,
        "m" => 60.0,
        _ => return Err(format!("`{text}` is no duration (known units: ms, s, m)")),
    };
    let seconds = number.parse::<f64>().map_err(|_| format!("`{text}` is no duration"))? * scale;
    Duration::try_from_secs_f64(seconds).map_err(|_| format!("`{text}` is no duration"))
}
