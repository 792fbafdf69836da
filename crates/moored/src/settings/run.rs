//! What the values of a `run` mean together: a [`ServerSpec`].

use std::collections::BTreeMap;
use std::ffi::OsString;

use moored_containment::{Ladder, Layer, Use};
use moored_launch::{Idle, Launch, LaunchStdio, ProcessEnv, Rules, ServerSpec, server_name};

use super::files::SettingsFile;
use super::layers::Layers;
use crate::args::run_flags::{self as flags, Containers};
use crate::args::{AnyFlag as _, IdleText, RunArgs};
use crate::exit::Failure;

/// A `run` as it is meant.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RunSettings {
    /// The server and the rules for its life.
    pub(crate) spec: ServerSpec,
    /// What to do about containers.
    pub(crate) containers: Containers,
}

impl RunSettings {
    /// Reads the settings of a `run`.
    pub(crate) fn read(
        args: RunArgs,
        process_env: ProcessEnv,
        files: Vec<SettingsFile>,
    ) -> Result<Self, Failure> {
        let layers = Layers::of_run(args.flags, &process_env.env, files, &process_env.cwd);
        let rules = rules(&layers)?;
        let containers = layers.value(&flags::CONTAINERS)?;
        let launch = launch(&layers, &args.command)?;
        Ok(Self { spec: ServerSpec { launch, process_env, rules }, containers })
    }
}

/// The server runs where we were started, with the variables that we were started with: those are left as they are.
fn launch(layers: &Layers, command: &[OsString]) -> Result<Launch, Failure> {
    let name = layers.optional(&flags::NAME)?.unwrap_or_else(|| server_name(command));
    // The parser lets no empty command through; one that is empty all the same cannot be started, and is told so.
    let (program, args) = command.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
    let mut launch = Launch::new(name, program).args(args);
    launch.ladder =
        Ladder::default().grace(layers.value(&flags::GRACE)?).kill_after(layers.value(&flags::KILL_AFTER)?);
    launch.stdio = if layers.value(&flags::DIRECT)? { LaunchStdio::INHERITED } else { LaunchStdio::PIPED };
    launch.keep = layers.optional(&flags::KEEP)?.unwrap_or_default();
    for (flag, layer) in [(&flags::SEALED, Layer::Landlock), (&flags::STRICT, Layer::Pidns)] {
        if layers.value(flag)? {
            refuse_to_keep(&launch, flag.name())?;
            launch.layers.insert(layer, Use::Required);
        }
    }
    Ok(launch)
}

/// A Landlock domain or PID namespace is ended by one kernel operation, which can spare no process.
fn refuse_to_keep(launch: &Launch, flag: &str) -> Result<(), Failure> {
    if launch.keep.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format_args!("`--keep` cannot be used with `--{flag}`, which can spare no process"))
        .hint(format_args!(
            "leave out `--{flag}`, or `--keep` (it may come from the settings: moored config show)"
        )))
}

fn rules(layers: &Layers) -> Result<Rules, Failure> {
    Ok(Rules {
        idle: idle(layers)?,
        max_lifetime: layers.value(&flags::MAX_LIFETIME)?,
        max_instances: layers.value(&flags::MAX_INSTANCES)?,
        over_limit: layers.value(&flags::OVER_LIMIT)?,
        restart: layers.value(&flags::RESTART)?,
        server_version: layers.optional(&flags::SERVER_VERSION)?,
        pid_file: layers.optional(&flags::PID_FILE)?,
        info_tool: layers.value(&flags::INFO_TOOL)?,
        log_file: layers.optional(&flags::LOG_FILE)?,
        line_limit: layers.value(&flags::LINE_LIMIT)?,
    })
}

fn idle(layers: &Layers) -> Result<Idle, Failure> {
    Ok(match layers.value(&flags::IDLE)? {
        IdleText::Off => Idle::Off,
        IdleText::After(silence) => Idle::After(silence),
        IdleText::Auto => layers.optional(&flags::AUTO_IDLE)?.map_or_else(Idle::default, Idle::Auto),
    })
}

/// Reads the whole of a settings file as `run` would, for `config check`.
pub(crate) fn check(file: SettingsFile) -> Result<(), Failure> {
    let process_env = ProcessEnv { cwd: "/".into(), env: BTreeMap::new() };
    let args = RunArgs { command: vec!["check".into()], ..RunArgs::default() };
    RunSettings::read(args, process_env, vec![file]).map(drop)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
