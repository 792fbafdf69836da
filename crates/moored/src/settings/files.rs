//! Where settings files are, and what stands in them. A key that is not known is told and passed over, so that a file
//! for a later version still works; a file that is no TOML is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::keys::KEYS;
use crate::exit::{Exit, Failure};

/// One settings file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    /// The values of `[run]` as texts.
    pub(crate) values: BTreeMap<String, Vec<String>>,
    /// What was passed over, as sentences.
    pub(crate) unknown: BTreeSet<String>,
}

impl SettingsFile {
    /// Reads its text.
    pub(crate) fn parse(path: PathBuf, text: &str) -> Result<Self, Failure> {
        let unreadable = |why: &dyn std::fmt::Display| {
            Failure::to(format_args!("read the settings in `{}`: {why}", path.display()))
                .exit(Exit::RUN_FAILED)
        };
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| unreadable(&error))?;
        let mut values = BTreeMap::new();
        let mut unknown = BTreeSet::new();
        for (section, value) in table {
            match (section.as_str(), value) {
                ("run", toml::Value::Table(run)) => {
                    for (key, value) in run {
                        if !KEYS.iter().any(|known| known.name == key) {
                            unknown.insert(format!("unknown key `run.{key}`"));
                            continue;
                        }
                        let texts = texts(&value)
                            .ok_or_else(|| unreadable(&format_args!("`run.{key}` is no plain value")))?;
                        values.insert(key, texts);
                    }
                }
                ("run", _) => return Err(unreadable(&"`run` is no table")),
                (section, _) => drop(unknown.insert(format!("unknown key `{section}`"))),
            }
        }
        Ok(Self { path, values, unknown })
    }
}

/// A value as texts: one, or those of a list.
fn texts(value: &toml::Value) -> Option<Vec<String>> {
    match value {
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Integer(number) => Some(vec![number.to_string()]),
        toml::Value::Boolean(switch) => Some(vec![switch.to_string()]),
        toml::Value::Array(values) => values.iter().map(|v| v.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}

/// Where settings files are looked for, the nearest first.
pub(crate) fn candidates(cwd: &Path, env: &BTreeMap<OsString, OsString>) -> Vec<PathBuf> {
    let folder =
        |name: &str| env.get(&OsString::from(name)).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
    let mut places = vec![cwd.join("moored.toml")];
    places.extend(config.map(|folder| folder.join("moored/config.toml")));
    places.push("/etc/moored/config.toml".into());
    places
}

/// Reads those that are there.
pub(crate) fn read_all(places: &[PathBuf]) -> Result<Vec<SettingsFile>, Failure> {
    let mut files = Vec::new();
    for place in places {
        files.extend(read_one(place)?);
    }
    Ok(files)
}

/// Reads one, if it is there. Somebody else's is passed over: whoever can write to a folder that we happen to run in
/// must not be able to say where our files go.
pub(crate) fn read_one(path: &Path) -> Result<Option<SettingsFile>, Failure> {
    let unreadable = |error: io::Error| {
        Failure::to(format_args!("read the settings in `{}`: {error}", path.display())).exit(Exit::RUN_FAILED)
    };
    let about = match std::fs::metadata(path) {
        Ok(about) => about,
        // A folder that we may not enter has no settings for us.
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
            ) =>
        {
            return Ok(None);
        }
        Err(error) => return Err(unreadable(error)),
    };
    if about.uid() != 0 && about.uid() != rustix::process::geteuid().as_raw() {
        let unknown = BTreeSet::from([format!("it belongs to somebody else (uid {})", about.uid())]);
        return Ok(Some(SettingsFile { path: path.into(), values: BTreeMap::new(), unknown }));
    }
    // Whoever reads it would wait for somebody who writes.
    if about.file_type().is_fifo() {
        return Err(unreadable(io::Error::other("it is a FIFO")));
    }
    let text = std::fs::read_to_string(path).map_err(unreadable)?;
    SettingsFile::parse(path.into(), &text).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_passed_over_and_told() {
        let file =
            SettingsFile::parse("/x".into(), "[run]\ngrace='1s'\ngrase='2s'\n[other]\n").expect("settings");
        assert_eq!(file.values.keys().collect::<Vec<_>>(), ["grace"]);
        assert_eq!(
            file.unknown.iter().collect::<Vec<_>>(),
            ["unknown key `other`", "unknown key `run.grase`"]
        );
    }

    #[test]
    fn what_is_no_toml_or_no_value_is_an_error() {
        for text in ["[run", "run = 3", "[run]\ngrace = { a = 1 }", "[run]\nkeep = [1]"] {
            let failure = SettingsFile::parse("/x".into(), text).expect_err(text);
            assert!(matches!(failure, Failure::Told { exit: Exit::RUN_FAILED, .. }), "{text}");
        }
    }

    #[test]
    fn files_are_looked_for_from_near_to_far() {
        let env = |name: &str, value: &str| BTreeMap::from([(OsString::from(name), OsString::from(value))]);
        let places = |env| candidates(Path::new("/w"), &env);
        let expected = |user: &str| ["/w/moored.toml", user, "/etc/moored/config.toml"].map(PathBuf::from);
        assert_eq!(places(env("XDG_CONFIG_HOME", "/c")), expected("/c/moored/config.toml"));
        assert_eq!(places(env("HOME", "/h")), expected("/h/.config/moored/config.toml"));
        assert_eq!(places(env("HOME", "not/absolute")).len(), 2);
    }
}
