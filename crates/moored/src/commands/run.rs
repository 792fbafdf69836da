//! `moored run`: reads what is meant, and hands over. Nothing is done before that takes time: a client waits for the
//! server's first byte.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use moored_containment::RuntimeDir;
use moored_supervisor::event::RunId;
use moored_supervisor::ledger::Writer;
use moored_supervisor::log::{Limits, ServerLog};
use moored_supervisor::places::StateDir;
use moored_supervisor::session::{self, RunError, Surroundings};
use moored_supervisor::spec::masked_text;

use crate::args::RunArgs;
use crate::exit::{Exit, Failure};
use crate::own_program::own_program;
use crate::render;
use crate::settings::{Around, Containers, Places, RunSettings};

pub(super) fn run(args: RunArgs) -> Result<Exit, Failure> {
    let around = around();
    let files = Places::of(args.config.as_deref(), &around.cwd, &around.env).read()?;
    for file in &files {
        for what in &file.unknown {
            render::say(&format!("moored: `{}` is passed over: {what}", file.path.display()));
        }
    }
    let settings = RunSettings::read(args, around, files)?;
    start(settings)
}

/// What we were started in. A working directory that was removed is no reason not to run.
fn around() -> Around {
    let cwd = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
    Around { cwd, env: std::env::vars_os().collect() }
}

/// Hands over to the session, and tells afterwards what could not be written down.
fn start(settings: RunSettings) -> Result<Exit, Failure> {
    let RunSettings { spec, containers } = settings;
    if containers != Containers::Off {
        render::say(
            "moored: containers are not looked after yet: those that the server starts are left as they are",
        );
    }
    let (name, run, state) = (spec.name.clone(), RunId::generate(), StateDir::of_user());
    let log_file = spec.rules.log_file.clone().or(state.as_ref().ok().map(|state| state.log_of(&name, run)));
    let folder = RuntimeDir::of_user();
    if let Some(warning) = folder.as_ref().ok().and_then(RuntimeDir::warning) {
        render::say(&format!("moored: {warning}"));
    }
    let spool = folder.as_ref().map_or_else(|_| std::env::temp_dir(), |folder| folder.path().to_path_buf());
    let writer = Arc::new(Writer::start(state, spool));
    let note = Arc::clone(&writer);
    let log = Arc::new(Mutex::new(log_file.clone().map(|path| ServerLog::open(path, Limits::default()))));
    let said = Arc::clone(&log);
    let surroundings = Surroundings {
        folder,
        note: Box::new(move |event| note.send(event)),
        log: Box::new(move |bytes| {
            if let Some(log) = said.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
                log.write(bytes);
            }
        }),
        log_file,
        run,
        version: env!("CARGO_PKG_VERSION"),
        remove_pid_file: own_command("remove-dead-pid-file"),
    };
    let outcome = session::run(spec, surroundings);
    let log = log.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(warning) = log.and_then(|log| log.finish(LAST_WORDS)) {
        render::say(&format!("moored: log: {warning}"));
    }
    let written = Arc::into_inner(writer).map(|writer| writer.finish(LAST_WORDS)).unwrap_or_default();
    if let Some(warning) = written.warning {
        render::say(&format!("moored: history: {warning}"));
    }
    match outcome {
        Ok(outcome) => Ok(Exit::Server(u8::try_from(outcome.exit_code).unwrap_or(125))),
        Err(error) => Err(not_run(&name, &error)),
    }
}

/// The tree is gone by now, and what is not written in this time waits in the spool.
const LAST_WORDS: Duration = Duration::from_millis(400);

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
