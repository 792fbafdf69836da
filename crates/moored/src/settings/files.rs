//! Where settings files are, and what stands in them.
//!
//! The user's own file and the machine's are read if they are there. Any other file, one in the working folder too, is
//! read only when `--config` names it: clients start servers in whatever folder they work in, and a cloned repository must
//! not set rules. A key that is not known is told and passed over, so that a file for a later version still works; a file
//! that is no TOML is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use super::nearest::nearest;
use crate::args::{AnyFlag, Offered, RUN};
use crate::exit::{Exit, Failure};

/// One settings file, read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SettingsFile {
    pub(crate) path: PathBuf,
    /// The values as texts, by `SECTION.KEY`.
    pub(crate) values: BTreeMap<String, Vec<String>>,
    /// What was passed over, as sentences.
    pub(crate) unknown: BTreeSet<String>,
}

impl SettingsFile {
    /// Reads its text.
    pub(crate) fn parse(path: PathBuf, text: &str) -> Result<Self, Failure> {
        let unreadable = |why: &dyn std::fmt::Display| unreadable(&path, why);
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| unreadable(&error))?;
        let mut values = BTreeMap::new();
        let mut unknown = BTreeSet::new();
        for (name, value) in table {
            let Some(section) = SECTIONS.iter().find(|section| section.name == name) else {
                unknown.insert(unknown_key("", &name, SECTIONS.iter().map(|section| section.name)));
                continue;
            };
            let toml::Value::Table(given) = value else {
                return Err(unreadable(&format_args!("`{name}` is no table")));
            };
            for (key, value) in given {
                let keys = section.flags.iter().filter(|flag| is_key(**flag)).map(|flag| flag.name());
                if !keys.clone().any(|known| known == key) {
                    unknown.insert(unknown_key(&format!("{name}."), &key, keys));
                    continue;
                }
                let texts = texts(&value)
                    .ok_or_else(|| unreadable(&format_args!("`{name}.{key}` is no plain value")))?;
                values.insert(format!("{name}.{key}"), texts);
            }
        }
        Ok(Self { path, values, unknown })
    }
}

/// One table of a settings file.
pub(crate) struct Section {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) flags: &'static [&'static dyn AnyFlag],
}

/// All of them.
pub(crate) static SECTIONS: [Section; 1] =
    [Section { name: "run", about: "rules for the servers that `moored run` starts", flags: RUN }];

/// Whether a settings file can give this flag.
pub(crate) fn is_key(flag: &dyn AnyFlag) -> bool {
    flag.where_offered() != Offered::VariableOnly
}

fn unknown_key<'a>(section: &str, key: &str, known: impl Iterator<Item = &'a str>) -> String {
    match nearest(key, known) {
        Some(meant) => format!("unknown key `{section}{key}`; `{section}{meant}` may be meant"),
        None => format!("unknown key `{section}{key}`"),
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

/// The settings files of one command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    /// The file that `--config` or `MOORED_CONFIG` names. It must be there.
    named: Option<PathBuf>,
    /// The user's own and the machine's, which need not be there.
    usual: Vec<PathBuf>,
}

impl Places {
    /// The places for a command that was started in `cwd` with this `--config` and this environment.
    pub(crate) fn of(config: Option<&Path>, cwd: &Path, env: &BTreeMap<OsString, OsString>) -> Self {
        let path =
            |name: &str| env.get(&OsString::from(name)).filter(|path| !path.is_empty()).map(PathBuf::from);
        let folder = |name: &str| path(name).filter(|path| path.is_absolute());
        let user = folder("XDG_CONFIG_HOME").or_else(|| Some(folder("HOME")?.join(".config")));
        let mut usual: Vec<PathBuf> =
            user.map(|folder| folder.join("moored/config.toml")).into_iter().collect();
        usual.push("/etc/moored/config.toml".into());
        let named = config.map(Path::to_path_buf).or_else(|| path("MOORED_CONFIG"));
        Self { named: named.map(|file| cwd.join(file)), usual }
    }

    /// All of them, the strongest first.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.named.iter().chain(&self.usual).map(PathBuf::as_path)
    }

    /// Reads those that are there, the strongest first.
    pub(crate) fn read(&self) -> Result<Vec<SettingsFile>, Failure> {
        let mut files: Vec<SettingsFile> =
            self.named.as_deref().map(read_named).transpose()?.into_iter().collect();
        for place in &self.usual {
            files.extend(read_usual(place)?);
        }
        Ok(files)
    }

    /// The `moored.toml` of the working folder, if there is one that these places leave out.
    pub(crate) fn left_out(&self, cwd: &Path) -> Option<PathBuf> {
        let beside = cwd.join("moored.toml");
        let same = |named: &PathBuf| match (named.canonicalize(), beside.canonicalize()) {
            (Ok(named), Ok(beside)) => named == beside,
            _ => false,
        };
        (beside.is_file() && !self.named.as_ref().is_some_and(same)).then_some(beside)
    }
}

/// Reads a file that the user named with `--config`, which is trusted, whoever owns it.
pub(crate) fn read_named(path: &Path) -> Result<SettingsFile, Failure> {
    let about = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    read_text(path, &about)
}

/// Reads a file of the usual places, if it is there. One that belongs to another user is passed over: that user must not
/// be able to say where our files go.
fn read_usual(path: &Path) -> Result<Option<SettingsFile>, Failure> {
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
        Err(error) => return Err(unreadable(path, &error)),
    };
    if about.uid() != 0 && about.uid() != rustix::process::geteuid().as_raw() {
        let unknown = BTreeSet::from([format!("it belongs to another user (uid {})", about.uid())]);
        return Ok(Some(SettingsFile { path: path.into(), values: BTreeMap::new(), unknown }));
    }
    read_text(path, &about).map(Some)
}

fn read_text(path: &Path, about: &Metadata) -> Result<SettingsFile, Failure> {
    // Reading a FIFO would wait for a writer.
    if about.file_type().is_fifo() {
        return Err(unreadable(path, &"it is a FIFO"));
    }
    let text = std::fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    SettingsFile::parse(path.into(), &text)
}

fn unreadable(path: &Path, why: &dyn std::fmt::Display) -> Failure {
    Failure::to(format_args!("read the settings in `{}`: {why}", path.display())).exit(Exit::RUN_FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_passed_over_and_told() {
        let file =
            SettingsFile::parse("/x".into(), "[run]\ngrace='1s'\ngrase='2s'\n[other]\n").expect("settings");
        assert_eq!(file.values.keys().collect::<Vec<_>>(), ["run.grace"]);
        assert_eq!(
            file.unknown.iter().collect::<Vec<_>>(),
            ["unknown key `other`", "unknown key `run.grase`; `run.grace` may be meant"]
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
    fn the_users_file_stands_before_the_machines_and_a_named_one_before_both() {
        let places = |config: Option<&str>, env: &[(&str, &str)]| {
            let env = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
            let places = Places::of(config.map(Path::new), Path::new("/w"), &env);
            places.paths().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" ")
        };
        let machine = "/etc/moored/config.toml";
        assert_eq!(places(None, &[("XDG_CONFIG_HOME", "/c")]), format!("/c/moored/config.toml {machine}"));
        assert_eq!(places(None, &[("HOME", "/h")]), format!("/h/.config/moored/config.toml {machine}"));
        assert_eq!(places(None, &[("HOME", "not/absolute"), ("XDG_CONFIG_HOME", ".")]), machine);
        assert_eq!(places(Some("a.toml"), &[("MOORED_CONFIG", "/b.toml")]), format!("/w/a.toml {machine}"));
        assert_eq!(places(None, &[("MOORED_CONFIG", "/b.toml")]), format!("/b.toml {machine}"));
        assert_eq!(places(None, &[("MOORED_CONFIG", "")]), machine);
    }
}
