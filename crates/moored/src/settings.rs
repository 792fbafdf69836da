//! What was typed, and what is written in the environment and the files, becomes what is meant: a [`ServerSpec`].
//!
//! A flag beats a `MOORED_*` variable, which beats a file, which beats the default; of the files the one that `--config`
//! names wins, then the user's, then the machine's, value by value. Each value knows where it came from, so that a wrong one can be found. `layers` owns that order, `files`
//! where the files are and how they are read, `units` how a value is written.

mod files;
mod keys;
mod layers;
mod units;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use moored_containment::{Ladder, Layer, Use};
use moored_launch::{
    Idle, Launch, LaunchStdio, OverLimit, ProcessEnv, Restart, Rules, ServerSpec, server_name,
};

use crate::args::RunArgs;
use crate::exit::Failure;

pub(crate) use files::{Places, SettingsFile, read_named};
pub(crate) use keys::{KEYS, Kind, schema};
pub(crate) use layers::{Layers, Origin};
pub(crate) use units::duration;

/// What to do about containers that the server starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Containers {
    /// Do not look at them.
    #[default]
    Off,
    /// Say which there are.
    Report,
    /// End those that the server is attached to.
    Attached,
    /// End all that the session created.
    Session,
}

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
        let layers = Layers::of_run(&args, &process_env.env, files);
        let rules = rules(&layers, &process_env)?;
        let containers = layers.one_of("containers", &CONTAINERS)?.unwrap_or_default();
        let launch = launch(&layers, &args.command)?;
        Ok(Self { spec: ServerSpec { launch, process_env, rules }, containers })
    }
}

const CONTAINERS: [(&str, Containers); 4] = [
    ("off", Containers::Off),
    ("report", Containers::Report),
    ("attached", Containers::Attached),
    ("session", Containers::Session),
];

/// The server runs where we were started, with the variables that we were started with: those are left as they are.
fn launch(layers: &Layers, command: &[OsString]) -> Result<Launch, Failure> {
    let name = layers.text("name")?.unwrap_or_else(|| server_name(command));
    // The parser lets no empty command through; one that is empty all the same cannot be started, and is told so.
    let (program, args) = command.split_first().map_or((OsString::new(), &[][..]), |(p, a)| (p.clone(), a));
    let usual = Ladder::default();
    let mut launch = Launch::new(name, program).args(args);
    launch.ladder = usual
        .grace(layers.read("grace", duration)?.unwrap_or(usual.grace))
        .kill_after(layers.read("kill-after", duration)?.unwrap_or(usual.kill_after));
    let is_on = |key| Ok::<bool, Failure>(layers.read(key, units::switch)?.unwrap_or_default());
    launch.stdio = if is_on("direct")? { LaunchStdio::INHERITED } else { LaunchStdio::PIPED };
    launch.keep = layers.list("keep");
    for (key, layer) in [("sealed", Layer::Landlock), ("strict", Layer::Pidns)] {
        if is_on(key)? {
            refuse_to_keep(&launch, key)?;
            launch.layers.insert(layer, Use::Required);
        }
    }
    Ok(launch)
}

/// A kernel that ends everything at one stroke can spare nobody.
fn refuse_to_keep(launch: &Launch, flag: &str) -> Result<(), Failure> {
    if launch.keep.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format_args!("`--keep` cannot be used with `--{flag}`, which can spare nobody")).hint(
        format_args!("leave out `--{flag}`, or `--keep` (it may come from the settings: moored config show)"),
    ))
}

fn rules(layers: &Layers, process_env: &ProcessEnv) -> Result<Rules, Failure> {
    let usual = Rules::default();
    let auto = layers.read("auto-idle", duration)?.map_or(usual.idle, Idle::Auto);
    Ok(Rules {
        idle: layers.read("idle", |text| idle(text, auto))?.unwrap_or(auto),
        max_lifetime: layers.read("max-lifetime", lifetime)?.flatten(),
        max_instances: layers.read("max-instances", units::count)?.flatten(),
        over_limit: layers.one_of("over-limit", &OVER_LIMIT)?.unwrap_or_default(),
        restart: layers.one_of("restart", &RESTART)?.unwrap_or_default(),
        server_version: layers.text("server-version")?,
        pid_file: layers.path("pid-file", &process_env.cwd),
        info_tool: layers.read("info-tool", units::switch)?.unwrap_or_default(),
        log_file: layers.path("log-file", &process_env.cwd),
        line_limit: layers.read("line-limit", units::size)?.unwrap_or(usual.line_limit),
    })
}

const OVER_LIMIT: [(&str, OverLimit); 3] = [
    ("hibernate", OverLimit::Hibernate),
    ("stop-oldest", OverLimit::StopOldest),
    ("refuse", OverLimit::Refuse),
];

const RESTART: [(&str, Restart); 2] = [("never", Restart::Never), ("on-crash", Restart::OnCrash)];

fn idle(text: &str, auto: Idle) -> Result<Idle, String> {
    match text {
        "auto" => Ok(auto),
        "off" => Ok(Idle::Off),
        text => match duration(text) {
            Ok(Duration::ZERO) => Err("expected more than no time; `off` means never".to_owned()),
            Ok(silence) => Ok(Idle::After(silence)),
            Err(_) => Err("expected auto, off, or a duration like 500ms, 2s, 15m or 1h".to_owned()),
        },
    }
}

fn lifetime(text: &str) -> Result<Option<Duration>, String> {
    match text {
        "off" => Ok(None),
        text => match duration(text)? {
            Duration::ZERO => Err("expected more than no time; `off` means for ever".to_owned()),
            lifetime => Ok(Some(lifetime)),
        },
    }
}

/// Reads the whole of a settings file as `run` would, for `config check`.
pub(crate) fn check(file: SettingsFile) -> Result<(), Failure> {
    let process_env = ProcessEnv { cwd: "/".into(), env: BTreeMap::new() };
    let args = RunArgs { command: vec!["check".into()], ..RunArgs::default() };
    RunSettings::read(args, process_env, vec![file]).map(drop)
}

/// Where a path that stands in a file begins: beside that file.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests;
