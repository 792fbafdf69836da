//! Which of several places gives a value: the flag, else the environment, else the nearest file. Values are texts here;
//! a wrong one is told with the place that gave it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::files::SettingsFile;
use super::nearest::nearest;
use crate::args::{AnyFlag, Flag, GLOBAL, GlobalFlags, Kind, RUN, RunFlags, TypedValues};
use crate::exit::{Exit, Failure};

/// Where a value came from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// It was typed.
    Flag,
    /// This variable.
    Env(String),
    /// This file.
    File(PathBuf),
    /// The default: no flag, variable or file gives it.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Env(name) => write!(f, "env {name}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Default => f.write_str("default"),
        }
    }
}

/// A value that was given, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) values: Vec<OsString>,
    pub(crate) origin: Origin,
}

/// All places that give values, the strongest first.
#[derive(Debug)]
pub(crate) struct Layers {
    /// The part of a settings file that is meant; none where files say nothing.
    section: &'static str,
    typed: TypedValues,
    env: BTreeMap<OsString, OsString>,
    files: Vec<SettingsFile>,
    cwd: PathBuf,
}

impl Layers {
    /// Those of a `run`.
    pub(crate) fn of_run(
        typed: RunFlags,
        env: &BTreeMap<OsString, OsString>,
        files: Vec<SettingsFile>,
        cwd: &Path,
    ) -> Self {
        Self { section: "run", typed: typed.0, env: of_flags(env, RUN), files, cwd: cwd.into() }
    }

    /// Those of the flags that every command has: files say nothing of them.
    pub(crate) fn of_every_command(typed: GlobalFlags, env: &BTreeMap<OsString, OsString>) -> Self {
        Self {
            section: "",
            typed: typed.0,
            env: of_flags(env, GLOBAL),
            files: Vec::new(),
            cwd: PathBuf::new(),
        }
    }

    /// What is given for this flag, and by whom.
    pub(crate) fn given(&self, flag: &dyn AnyFlag) -> Option<Given> {
        if let Some(values) = self.typed.get(flag.name()) {
            return Some(Given { values: values.clone(), origin: Origin::Flag });
        }
        for name in flag.variables() {
            let value = self.env.get(OsStr::new(&name)).filter(|value| !value.is_empty());
            if let Some(value) = value {
                let values = if flag.kind() == Kind::List { split(value) } else { vec![value.clone()] };
                return Some(Given { values, origin: Origin::Env(name) });
            }
        }
        let key = format!("{}.{}", self.section, flag.name());
        self.files.iter().find_map(|file| {
            let values = file.values.get(&key)?.iter().map(Into::into).collect();
            Some(Given { values, origin: Origin::File(file.path.clone()) })
        })
    }

    /// The value of a flag that need not have one.
    pub(crate) fn optional<T: Clone + Sync>(&self, flag: &Flag<T>) -> Result<Option<T>, Failure> {
        let given = self.given(flag).or_else(|| {
            let values = vec![flag.default_value()?.into()];
            Some(Given { values, origin: Origin::Default })
        });
        let Some(given) = given else { return Ok(None) };
        let folder = match &given.origin {
            Origin::File(file) => file.parent().unwrap_or(Path::new("/")),
            _ => &self.cwd,
        };
        flag.read(&given.values, folder).map_err(|why| self.wrong(flag, &given, &why))
    }

    /// The value of a flag that has a default.
    pub(crate) fn value<T: Clone + Sync>(&self, flag: &Flag<T>) -> Result<T, Failure> {
        self.optional(flag)?.ok_or_else(|| Failure::usage(format_args!("`--{}` has no value", flag.name())))
    }

    fn wrong(&self, flag: &dyn AnyFlag, given: &Given, why: &str) -> Failure {
        let (place, exit) = match &given.origin {
            Origin::Flag | Origin::Default => (format!("`--{}`", flag.name()), Exit::Usage),
            Origin::Env(name) => (format!("`{name}`"), Exit::Usage),
            Origin::File(path) => {
                (format!("`{}.{}` in `{}`", self.section, flag.name(), path.display()), Exit::RUN_FAILED)
            }
        };
        let value = given.values.first().map(|value| value.to_string_lossy()).unwrap_or_default();
        Failure::usage(format_args!("invalid value `{value}` for {place}: {why}")).exit(exit)
    }
}

/// The variables that give these flags.
fn of_flags(env: &BTreeMap<OsString, OsString>, flags: &[&dyn AnyFlag]) -> BTreeMap<OsString, OsString> {
    let names = flags.iter().flat_map(|flag| flag.variables()).map(OsString::from);
    names
        .filter_map(|name| Some((env.get(&name)?.clone(), name)))
        .map(|(value, name)| (name, value))
        .collect()
}

/// Variables that say where moored's files are.
const PLACES: [&str; 3] = ["MOORED_CONFIG", "MOORED_RUNTIME_DIR", "MOORED_STATE_DIR"];

/// Sentences about variables that are ours by their name, that nothing reads, and that look like one that is read.
pub(crate) fn unknown_variables(env: &BTreeMap<OsString, OsString>) -> Vec<String> {
    let flags = RUN.iter().chain(GLOBAL).flat_map(|flag| flag.variables());
    let known: Vec<String> = flags.chain(PLACES.map(str::to_owned)).collect();
    let ours = env.keys().filter_map(|name| name.to_str()).filter(|name| name.starts_with("MOORED_"));
    let unknown = ours.filter(|name| !known.iter().any(|known| known == name));
    let told = unknown.filter_map(|name| {
        let meant = nearest(name, known.iter().map(String::as_str))?;
        Some(format!("the variable `{name}` is passed over; `{meant}` may be meant"))
    });
    told.collect()
}

fn split(value: &OsStr) -> Vec<OsString> {
    match value.to_str() {
        Some(text) => {
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Into::into).collect()
        }
        None => vec![value.to_owned()],
    }
}
