//! The owner in the tests of `tests/promises`: starts one contained command, tells who is who, and ends in the way it is
//! told to.
//!
//! It is an ordinary program that uses the library as any other would: no special `main`, and more threads, memory or
//! forked workers than it needs if asked for. What it does:
//!
//! 1. starts CMD with a pipe for stdin and nothing to read its output;
//! 2. writes `{"host":…,"outer":…,"inner":…,"server":…,"id":…,"strength":…}` to `--pids FILE` (atomically);
//! 3. waits until the file `--go FILE` exists, or exits if the test that started it is gone;
//! 4. ends as `--ending` says, and writes the report, if it gets one, to `--report FILE` (atomically).
//!
//! `--unread-output` gives CMD pipes for its output, which nobody reads. `--ending sweep` starts nothing: it sweeps the
//! records in `--runtime DIR` and writes what it did to `--report FILE`.
#![expect(clippy::print_stderr, reason = "a test program's own words")]
#![expect(clippy::exit, reason = "ending in every way there is is its purpose")]

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

use moored_containment::{Command, Contained, EndReport, Ladder, Layer, Recording, RuntimeDir, Stdio, Use};

/// The test.
static STARTED_BY: OnceLock<u32> = OnceLock::new();

#[derive(Default)]
struct Options {
    ending: String,
    pids: Option<PathBuf>,
    go: Option<PathBuf>,
    report: Option<PathBuf>,
    grace: Duration,
    kill_after: Duration,
    layers: Vec<(Layer, Use)>,
    keep: Vec<String>,
    on_end: Vec<String>,
    runtime: Option<PathBuf>,
    ballast_mb: usize,
    threads: usize,
    forked_worker: bool,
    asynchronous: bool,
    unread_output: bool,
    command: Vec<String>,
}

fn main() -> ExitCode {
    STARTED_BY.get_or_init(std::os::unix::process::parent_id);
    let options = match parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("promise_host: {problem}");
            return ExitCode::from(2);
        }
    };
    let ballast = vec![1_u8; options.ballast_mb << 20];
    for _ in 0..options.threads {
        std::thread::spawn(|| std::thread::sleep(Duration::from_secs(600)));
    }
    let ended = match &*options.ending {
        "sweep" => sweep(&options),
        _ if options.asynchronous => run_async(&options),
        _ => run(&options),
    };
    std::hint::black_box(&ballast);
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("promise_host: {error}");
            ExitCode::from(125)
        }
    }
}

type Problem = Box<dyn std::error::Error>;

fn command(options: &Options) -> Result<Command, Problem> {
    let (program, args) = options.command.split_first().ok_or("no command")?;
    let mut command = Command::new(program);
    let ladder = Ladder::default().grace(options.grace).kill_after(options.kill_after);
    let output = || if options.unread_output { Stdio::Pipe } else { Stdio::Null };
    command.args(args).stdin(Stdio::Pipe).stdout(output()).stderr(output()).ladder(ladder);
    for (layer, wanted) in &options.layers {
        command.layer(*layer, *wanted);
    }
    for program in &options.keep {
        command.keep(program);
    }
    if !options.on_end.is_empty() {
        command.on_end(&options.on_end);
    }
    if let Some(runtime) = &options.runtime {
        command.recording(Recording::In(RuntimeDir::at(runtime)?));
    }
    Ok(command)
}

fn run(options: &Options) -> Result<(), Problem> {
    let mut server = command(options)?.spawn()?;
    if options.forked_worker {
        fork_worker()?;
    }
    let guardians = server.guardians().map(|g| g.pid);
    introduce(options, guardians, server.identity().pid, server.id().to_string(), server.strength())?;
    wait_for_go(options);
    let ladder = Ladder::default().grace(options.grace).kill_after(options.kill_after);
    let report = match options.ending.as_str() {
        "end" => server.end(ladder)?,
        "terminate" => server.end(Ladder { from: moored_containment::Rung::Terminate, ..ladder })?,
        "kill" => server.end(Ladder { from: moored_containment::Rung::Kill, ..ladder })?,
        "wait" => server.wait_ended()?,
        "close-stdin" => {
            server.stdin = None;
            server.wait_ended()?
        }
        other => return end_without_report(other, server),
    };
    write_report(options, &report)
}

/// The endings after which nobody is left to write a report.
fn end_without_report(ending: &str, server: Contained) -> Result<(), Problem> {
    match ending {
        "drop" => drop(server),
        // The handle is still there when `main` returns, and is dropped by nobody.
        "return" => std::mem::forget(server),
        "exit" => std::process::exit(7),
        "abort" => std::process::abort(),
        "panic" => panic!("as asked for"),
        // To be killed from outside.
        "hold" => loop {
            std::thread::sleep(Duration::from_millis(100));
            exit_if_orphaned();
        },
        other => return Err(format!("unknown ending `{other}`").into()),
    }
    Ok(())
}

fn run_async(options: &Options) -> Result<(), Problem> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut server = runtime.block_on(async { command(options)?.spawn_async().map_err(Problem::from) })?;
    let guardians = server.guardians().map(|g| g.pid);
    introduce(options, guardians, server.identity().pid, server.id().to_string(), server.strength())?;
    wait_for_go(options);
    let ladder = Ladder::default().grace(options.grace).kill_after(options.kill_after);
    match options.ending.as_str() {
        "end" => {
            let report = runtime.block_on(server.end(ladder))?;
            write_report(options, &report)
        }
        "wait" => {
            let report = runtime.block_on(server.wait_ended())?;
            write_report(options, &report)
        }
        // The runtime goes first: dropping must work without it.
        "drop" => {
            drop(runtime);
            drop(server);
            Ok(())
        }
        other => Err(format!("unknown async ending `{other}`").into()),
    }
}

/// A copy of this process that does nothing but hold every file that we have open.
fn fork_worker() -> Result<(), Problem> {
    match fork::fork() {
        Ok(fork::Fork::Child) => loop {
            std::thread::sleep(Duration::from_secs(600));
        },
        Ok(fork::Fork::Parent(_)) => Ok(()),
        Err(error) => Err(format!("failed to fork a worker: {error:?}").into()),
    }
}

fn introduce(
    options: &Options,
    guardians: [u32; 2],
    server: u32,
    id: String,
    strength: &moored_containment::Strength,
) -> Result<(), Problem> {
    let Some(path) = &options.pids else { return Ok(()) };
    let who = serde_json::json!({
        "host": std::process::id(), "outer": guardians[0], "inner": guardians[1], "server": server, "id": id,
        "strength": strength,
    });
    write_atomically(path, &who.to_string())
}

fn wait_for_go(options: &Options) {
    while options.go.as_ref().is_some_and(|go| !go.exists()) {
        std::thread::sleep(Duration::from_millis(2));
        exit_if_orphaned();
    }
}

/// A test that was killed itself leaves nobody who would tell us to go.
fn exit_if_orphaned() {
    if STARTED_BY.get() != Some(&std::os::unix::process::parent_id()) {
        std::process::exit(9);
    }
}

fn write_report(options: &Options, report: &EndReport) -> Result<(), Problem> {
    let Some(path) = &options.report else { return Ok(()) };
    write_atomically(path, &serde_json::to_string(report)?)
}

/// What the next start of any program would do about sessions that nobody ended.
fn sweep(options: &Options) -> Result<(), Problem> {
    let runtime = options.runtime.as_ref().ok_or("`--ending sweep` needs `--runtime`")?;
    let report = moored_containment::sweep(&RuntimeDir::at(runtime)?)?;
    let Some(path) = &options.report else { return Ok(()) };
    write_atomically(path, &serde_json::to_string(&report)?)
}

fn write_atomically(path: &Path, text: &str) -> Result<(), Problem> {
    let draft = path.with_extension("new");
    std::fs::write(&draft, text)?;
    Ok(std::fs::rename(draft, path)?)
}

// === the command line ===

fn parse(args: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options =
        Options { grace: Duration::from_secs(2), kill_after: Duration::from_secs(2), ..Options::default() };
    let mut args = args;
    while let Some(option) = args.next() {
        let mut value = || args.next().ok_or(format!("`{option}` needs a value"));
        match option.as_str() {
            "--ending" => options.ending = value()?,
            "--pids" => options.pids = Some(value()?.into()),
            "--go" => options.go = Some(value()?.into()),
            "--report" => options.report = Some(value()?.into()),
            "--grace" => options.grace = millis(&value()?)?,
            "--kill-after" => options.kill_after = millis(&value()?)?,
            "--require" => options.layers.push((layer(&value()?)?, Use::Required)),
            "--try" => options.layers.push((layer(&value()?)?, Use::IfAvailable)),
            "--off" => options.layers.push((layer(&value()?)?, Use::Off)),
            "--keep" => options.keep.push(value()?),
            "--on-end" => options.on_end.push(value()?),
            "--runtime" => options.runtime = Some(value()?.into()),
            "--ballast" => options.ballast_mb = value()?.parse().map_err(|_| "no number of MB")?,
            "--threads" => options.threads = value()?.parse().map_err(|_| "no number of threads")?,
            "--forked-worker" => options.forked_worker = true,
            "--async" => options.asynchronous = true,
            "--unread-output" => options.unread_output = true,
            "--" => {
                options.command = args.collect();
                return Ok(options);
            }
            other => return Err(format!("unknown option `{other}`")),
        }
    }
    if options.ending == "sweep" { Ok(options) } else { Err("no `--` before the command".into()) }
}

fn millis(text: &str) -> Result<Duration, String> {
    text.parse().map(Duration::from_millis).map_err(|_| format!("`{text}` is no number of milliseconds"))
}

fn layer(name: &str) -> Result<Layer, String> {
    Layer::ALL.into_iter().find(|l| l.to_string() == name).ok_or(format!("unknown layer `{name}`"))
}
