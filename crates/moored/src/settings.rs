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
use std::path::{Path, PathBuf};
use std::time::Duration;

use moored_containment::Ladder;
use moored_supervisor::spec::{Idle, OverLimit, Restart, Rules, ServerSpec, server_name};

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

/// What a `run` finds around it.
#[derive(Debug)]
pub(crate) struct Around {
    /// The working directory.
    pub(crate) cwd: PathBuf,
    /// The environment.
    pub(crate) env: BTreeMap<OsString, OsString>,
}

impl RunSettings {
    /// Reads the settings of a `run`.
    pub(crate) fn read(args: RunArgs, around: Around, files: Vec<SettingsFile>) -> Result<Self, Failure> {
        let layers = Layers::of_run(&args, &around.env, files);
        let rules = rules(&layers, &around)?;
        let containers = layers.one_of("containers", &CONTAINERS)?.unwrap_or_default();
        let name = layers.text("name")?.unwrap_or_else(|| server_name(&args.command));
        let Around { cwd, env } = around;
        Ok(Self { spec: ServerSpec { name, command: args.command, cwd, env, rules }, containers })
    }
}

const CONTAINERS: [(&str, Containers); 4] = [
    ("off", Containers::Off),
    ("report", Containers::Report),
    ("attached", Containers::Attached),
    ("session", Containers::Session),
];

fn rules(layers: &Layers, around: &Around) -> Result<Rules, Failure> {
    let usual = Rules::default();
    let ladder = Ladder::default()
        .grace(layers.read("grace", duration)?.unwrap_or(usual.ladder.grace))
        .kill_after(layers.read("kill-after", duration)?.unwrap_or(usual.ladder.kill_after));
    let auto = layers.read("auto-idle", duration)?.map_or(usual.idle, Idle::Auto);
    let rules = Rules {
        ladder,
        idle: layers.read("idle", |text| idle(text, auto))?.unwrap_or(auto),
        max_lifetime: layers.read("max-lifetime", lifetime)?.flatten(),
        max_instances: layers.read("max-instances", units::count)?.flatten(),
        over_limit: layers.one_of("over-limit", &OVER_LIMIT)?.unwrap_or_default(),
        restart: layers.one_of("restart", &RESTART)?.unwrap_or_default(),
        server_version: layers.text("server-version")?,
        pid_file: layers.path("pid-file", &around.cwd),
        info_tool: layers.read("info-tool", units::switch)?.unwrap_or_default(),
        keep: layers.list("keep"),
        sealed: layers.read("sealed", units::switch)?.unwrap_or_default(),
        strict: layers.read("strict", units::switch)?.unwrap_or_default(),
        direct: layers.read("direct", units::switch)?.unwrap_or_default(),
        log_file: layers.path("log-file", &around.cwd),
        line_limit: layers.read("line-limit", units::size)?.unwrap_or(usual.line_limit),
    };
    refuse_contradictions(&rules)?;
    Ok(rules)
}

/// A kernel that ends everything at one stroke can spare nobody.
fn refuse_contradictions(rules: &Rules) -> Result<(), Failure> {
    let layer = if rules.sealed {
        "--sealed"
    } else if rules.strict {
        "--strict"
    } else {
        return Ok(());
    };
    if rules.keep.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format_args!("`--keep` cannot be used with `{layer}`, which can spare nobody")).hint(
        format_args!("leave out `{layer}`, or `--keep` (it may come from the settings: moored config show)"),
    ))
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
    let around = Around { cwd: "/".into(), env: BTreeMap::new() };
    let args = RunArgs { command: vec!["check".into()], ..RunArgs::default() };
    RunSettings::read(args, around, vec![file]).map(drop)
}

/// Where a path that stands in a file begins: beside that file.
pub(crate) fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

#[cfg(test)]
mod tests;
