//! `moored run`: reads what is meant, and hands over. Nothing is done before that takes time: a client waits for the
//! server's first byte.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::RuntimeDir;
use moored_launch::{ProcessEnv, masked_text};
use moored_supervisor::records::{Program, SessionRecords, Storage};
use moored_supervisor::session::{self, RunError};

use crate::args::RunArgs;
use crate::args::run_flags::Containers;
use crate::exit::{Exit, Failure};
use crate::own_program::own_program;
use crate::render;
use crate::settings::{Places, RunSettings, unknown_variables};

pub(super) fn run(args: RunArgs) -> Result<Exit, Failure> {
    let process_env = process_env();
    let files = Places::of(args.config.file.as_deref(), &process_env.cwd, &process_env.env).read()?;
    for file in &files {
        for what in &file.unknown {
            render::say(&format!("moored: `{}` is passed over: {what}", file.path.display()));
        }
    }
    for what in unknown_variables(&process_env.env) {
        render::say(&format!("moored: {what}"));
    }
    let settings = RunSettings::read(args, process_env, files)?;
    let RunSettings { spec, .. } = &settings;
    tracing::debug!(server = spec.launch.name, launch = ?spec.launch, rules = ?spec.rules, "settings are read");
    start(settings)
}

/// What we were started in. A working directory that was removed is no reason not to run.
fn process_env() -> ProcessEnv {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    ProcessEnv { cwd, env: std::env::vars_os().collect() }
}

/// Hands over to the session, and tells afterwards what could not be written down.
fn start(settings: RunSettings) -> Result<Exit, Failure> {
    let RunSettings { spec, containers } = settings;
    if containers != Containers::Off {
        render::say(
            "moored: containers are not looked after yet: those that the server starts are left as they are",
        );
    }
    let name = spec.launch.name.clone();
    let program =
        Program { version: env!("CARGO_PKG_VERSION"), remove_pid_file: own_command("remove-dead-pid-file") };
    let storage = Storage::of_user();
    if let Some(warning) = storage.runtime.as_ref().ok().and_then(RuntimeDir::warning) {
        render::say(&format!("moored: {warning}"));
    }
    let (records, host) = SessionRecords::begin(&spec, storage, program);
    let outcome = session::run(spec, host);
    for warning in records.finish(RECORDS_TIMEOUT) {
        render::say(&format!("moored: {warning}"));
    }
    match outcome {
        Ok(outcome) => Ok(Exit::Server(u8::try_from(outcome.exit_code).unwrap_or(125))),
        Err(error) => Err(not_run(&name, &error)),
    }
}

/// How long the log, and then the history, may take to be written. The tree is gone by now; events that are not written in this
/// time are in the spool.
const RECORDS_TIMEOUT: Duration = Duration::from_millis(400);

fn not_run(name: &str, error: &RunError) -> Failure {
    let cause = std::error::Error::source(error).map_or_else(String::new, |cause| format!(": {cause}"));
    let code = u8::try_from(error.exit_code()).unwrap_or(125);
    // Clients keep what we say here, and a command line that is no program is quoted in it.
    let why = masked_text(&format!("{error}{cause}"));
    Failure::to(format_args!("run `{name}`: {why}")).exit(Exit::Server(code))
}

/// This very program with a word, for the guardians to run. Where it cannot be found, nothing is run.
fn own_command(word: &str) -> Vec<OsString> {
    own_program().map(|own| vec![own.into_os_string(), word.into()]).unwrap_or_default()
}

pub(super) fn remove_dead_pid_file(path: &Path) -> Result<Exit, Failure> {
    session::remove_dead_pid_file(path)
        .map(|()| Exit::Ok)
        .map_err(|error| Failure::to(format_args!("remove `{}`: {error}", path.display())))
}
