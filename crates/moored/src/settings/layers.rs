//! Which of several places gives a value: the flag, else the environment, else the nearest file. Values are texts here;
//! a wrong one is told with the place that gave it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use super::files::SettingsFile;
use super::folder_of;
use crate::args::RunArgs;
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
    /// Nobody said anything.
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

/// A value that somebody gave, and who.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) values: Vec<OsString>,
    pub(crate) origin: Origin,
}

/// All places that give values, the strongest first.
#[derive(Debug)]
pub(crate) struct Layers {
    typed: BTreeMap<&'static str, Vec<OsString>>,
    env: BTreeMap<OsString, OsString>,
    files: Vec<SettingsFile>,
}

impl Layers {
    /// Those of a `run`.
    pub(crate) fn of_run(
        args: &RunArgs,
        env: &BTreeMap<OsString, OsString>,
        files: Vec<SettingsFile>,
    ) -> Self {
        let env = env.iter().filter(|(name, _)| may_be_ours(name));
        Self { typed: typed(args), env: env.map(|(n, v)| (n.clone(), v.clone())).collect(), files }
    }

    /// What is given for this key, and by whom.
    pub(crate) fn given(&self, key: &str) -> Option<Given> {
        if let Some(values) = self.typed.get(key) {
            return Some(Given { values: values.clone(), origin: Origin::Flag });
        }
        for name in variables(key) {
            let value = self.env.get(OsStr::new(&name)).filter(|value| !value.is_empty());
            if let Some(value) = value {
                let values = if key == "keep" { split(value) } else { vec![value.clone()] };
                return Some(Given { values, origin: Origin::Env(name) });
            }
        }
        self.files.iter().find_map(|file| {
            let values = file.values.get(key)?.iter().map(Into::into).collect();
            Some(Given { values, origin: Origin::File(file.path.clone()) })
        })
    }

    /// The value, read.
    pub(crate) fn read<T>(
        &self,
        key: &str,
        read: impl FnOnce(&str) -> Result<T, String>,
    ) -> Result<Option<T>, Failure> {
        let Some(given) = self.given(key) else { return Ok(None) };
        let Some(value) = given.values.first() else { return Ok(None) };
        let text = value.to_str().ok_or_else(|| "it is no text".to_owned());
        match text.and_then(read) {
            Ok(value) => Ok(Some(value)),
            Err(why) => Err(wrong(key, value, &given.origin, &why)),
        }
    }

    /// The value, one of these.
    pub(crate) fn one_of<T: Copy>(&self, key: &str, known: &[(&str, T)]) -> Result<Option<T>, Failure> {
        self.read(key, |text| match known.iter().find(|(name, _)| *name == text) {
            Some((_, value)) => Ok(*value),
            None => {
                let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
                Err(format!("expected one of {}", names.join(", ")))
            }
        })
    }

    /// The value, a text that is not empty.
    pub(crate) fn text(&self, key: &str) -> Result<Option<String>, Failure> {
        self.read(key, |text| match text.trim() {
            "" => Err("it is empty".to_owned()),
            text => Ok(text.to_owned()),
        })
    }

    /// All values.
    pub(crate) fn list(&self, key: &str) -> Vec<OsString> {
        self.given(key).map(|given| given.values).unwrap_or_default()
    }

    /// The value, a path: seen from the working directory, or from the file in which it stands.
    pub(crate) fn path(&self, key: &str, cwd: &Path) -> Option<PathBuf> {
        let given = self.given(key)?;
        let from = match &given.origin {
            Origin::File(file) => folder_of(file),
            _ => cwd,
        };
        given.values.first().map(|path| from.join(path))
    }
}

/// The variables that give this key, the strongest first. `MAX_KEEP_PROCESSES` is what servers that cap themselves use.
fn variables(key: &str) -> Vec<String> {
    let own = format!("MOORED_{}", key.to_ascii_uppercase().replace('-', "_"));
    if key == "max-instances" { vec![own, "MAX_KEEP_PROCESSES".to_owned()] } else { vec![own] }
}

fn may_be_ours(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b"MOORED_") || name == "MAX_KEEP_PROCESSES"
}

fn split(value: &OsStr) -> Vec<OsString> {
    match value.to_str() {
        Some(text) => {
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Into::into).collect()
        }
        None => vec![value.to_owned()],
    }
}

fn wrong(key: &str, value: &OsStr, origin: &Origin, why: &str) -> Failure {
    let (place, exit) = match origin {
        Origin::Flag | Origin::Default => (format!("`--{key}`"), Exit::Usage),
        Origin::Env(name) => (format!("`{name}`"), Exit::Usage),
        Origin::File(path) => (format!("`run.{key}` in `{}`", path.display()), Exit::RUN_FAILED),
    };
    Failure::usage(format_args!("invalid value `{}` for {place}: {why}", value.to_string_lossy())).exit(exit)
}

/// What was typed, by key.
fn typed(args: &RunArgs) -> BTreeMap<&'static str, Vec<OsString>> {
    let texts = [
        ("name", &args.name),
        ("grace", &args.grace),
        ("kill-after", &args.kill_after),
        ("idle", &args.idle),
        ("max-lifetime", &args.max_lifetime),
        ("max-instances", &args.max_instances),
        ("over-limit", &args.over_limit),
        ("restart", &args.restart),
        ("server-version", &args.server_version),
        ("info-tool", &args.info_tool),
        ("containers", &args.containers),
        ("sealed", &args.sealed),
        ("strict", &args.strict),
        ("direct", &args.direct),
        ("line-limit", &args.line_limit),
    ];
    let texts = texts.into_iter().filter_map(|(key, text)| Some((key, vec![text.as_ref()?.into()])));
    let paths = [("pid-file", &args.pid_file), ("log-file", &args.log_file)];
    let paths = paths.into_iter().filter_map(|(key, path)| Some((key, vec![path.clone()?])));
    let keep = (!args.keep.is_empty()).then(|| ("keep", args.keep.clone()));
    texts.chain(paths).chain(keep).collect()
}
