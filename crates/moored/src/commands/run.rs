//! `moored run`: reads what is meant, and hands over. Nothing is done before that takes time: a client waits for the
//! server's first byte.

use std::path::PathBuf;

use crate::args::RunArgs;
use crate::exit::{Exit, Failure};
use crate::render;
use crate::settings::{Around, RunSettings, candidates, read_all};

pub(super) fn run(args: RunArgs) -> Result<Exit, Failure> {
    let around = around();
    let files = read_all(&candidates(&around.cwd, &around.env))?;
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

/// Hands over to the session.
fn start(settings: RunSettings) -> Result<Exit, Failure> {
    let RunSettings { spec, containers: _ } = settings;
    Err(Failure::to(format_args!("start `{}`: this build has no sessions", spec.name)).exit(Exit::RUN_FAILED))
}
