//! Where what outlives a `run` is kept: the folder of history and logs, and the names in it.
//!
//! What is alive is elsewhere: in the runtime folder, which is containment's and `moored_registry`'s. To name a place touches no
//! disk; only [`StateDir::prepare`] and its like make folders, and their callers may have to wait for a slow disk.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use moored_containment::passwd_home;
use moored_launch::stable_hash;

use crate::event::RunId;

const DATABASE: &str = "state.db";
const LOGS: &str = "logs";
/// Longer names are cut: a file system takes 255 bytes, and a little is added to some.
const LONGEST_NAME: usize = 80;

/// There is no place for history.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// Neither the environment nor the user database names the user's home.
    #[error(
        "no home folder is known: neither MOORED_STATE_DIR, XDG_STATE_HOME, HOME nor the user database names one"
    )]
    NoHome,
}

/// The folder of history and logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateDir(PathBuf);

impl StateDir {
    /// The user's own: `$MOORED_STATE_DIR`, else `$XDG_STATE_HOME/moored`, else `~/.local/state/moored`.
    ///
    /// # Errors
    /// If the user has no home.
    pub fn of_user() -> Result<Self, PlaceError> {
        let uid = rustix::process::getuid().as_raw();
        choose(|name| std::env::var_os(name), || passwd_home(uid)).map(Self).ok_or(PlaceError::NoHome)
    }

    /// This one.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder, with all above it that is missing, for the user alone.
    ///
    /// # Errors
    /// If that cannot be done.
    pub fn prepare(&self) -> io::Result<()> {
        private_folder(&self.0)
    }

    /// The database of history.
    #[must_use]
    pub fn database(&self) -> PathBuf {
        self.0.join(DATABASE)
    }

    /// The folder of one server's logs.
    #[must_use]
    pub fn logs_of(&self, server: &str) -> PathBuf {
        self.0.join(LOGS).join(path_name(server))
    }

    /// Where the stderr of one `run` is kept.
    #[must_use]
    pub fn log_of(&self, server: &str, run: RunId) -> PathBuf {
        self.logs_of(server).join(format!("{run}.log"))
    }
}

/// A folder for the user alone. One that is there stays as it is.
pub(crate) fn private_folder(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// A server's name as one that every file system takes, and that leads nowhere. What had to be changed gets a number of
/// its own, so that two servers never share a folder by it.
///
/// ```
/// use moored_supervisor::places::path_name;
///
/// assert_eq!(path_name("context7-mcp"), "context7-mcp");
/// assert!(path_name("../etc").starts_with("_._etc-"));
/// assert_ne!(path_name("a/b"), path_name("a:b"));
/// ```
#[must_use]
pub fn path_name(server: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut name: String =
        server.chars().map(|c| if plain(c) { c } else { '_' }).take(LONGEST_NAME).collect();
    if name.starts_with('.') {
        name.replace_range(..1, "_");
    }
    if name != server || name.is_empty() {
        name.push_str(&format!("-{:08x}", stable_hash(server.as_bytes()) as u32));
    }
    name
}

/// The first place that is named. What the desktop's variables name must be absolute, as their specification says; our
/// own may be relative to where we are.
fn choose(env: impl Fn(&str) -> Option<OsString>, home: impl Fn() -> Option<PathBuf>) -> Option<PathBuf> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = env("MOORED_STATE_DIR").filter(|path| !path.is_empty());
    own.and_then(|path| std::path::absolute(path).ok())
        .or_else(|| Some(absolute("XDG_STATE_HOME")?.join("moored")))
        .or_else(|| Some(absolute("HOME").or_else(&home)?.join(".local/state/moored")))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use moored_testkit::{Scratch, User};

    use super::*;

    fn chosen(env: &[(&str, &str)], home: Option<&str>) -> Option<String> {
        let env = |name: &str| env.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value));
        choose(env, || home.map(PathBuf::from)).map(|path| path.display().to_string())
    }

    #[test]
    fn the_nearest_place_that_is_named_is_taken() {
        let all = [("MOORED_STATE_DIR", "/m"), ("XDG_STATE_HOME", "/x"), ("HOME", "/h")];
        assert_eq!(chosen(&all, Some("/p")).as_deref(), Some("/m"));
        assert_eq!(chosen(&all[1..], Some("/p")).as_deref(), Some("/x/moored"));
        assert_eq!(chosen(&all[2..], Some("/p")).as_deref(), Some("/h/.local/state/moored"));
        assert_eq!(chosen(&[], Some("/p")).as_deref(), Some("/p/.local/state/moored"));
        assert_eq!(chosen(&[], None), None);
    }

    #[test]
    fn our_own_variable_may_be_relative() {
        let here = std::env::current_dir().expect("a folder");
        assert_eq!(chosen(&[("MOORED_STATE_DIR", "s")], None), Some(here.join("s").display().to_string()));
    }

    #[test]
    fn an_empty_or_relative_place_is_none() {
        assert_eq!(
            chosen(&[("MOORED_STATE_DIR", ""), ("XDG_STATE_HOME", "x"), ("HOME", "/h")], None).as_deref(),
            Some("/h/.local/state/moored")
        );
    }

    #[test]
    fn a_folder_is_the_users_alone() {
        let scratch = Scratch::for_user(User::current());
        let state = StateDir::at(scratch.join("a/b"));
        state.prepare().expect("folders");
        state.prepare().expect("twice is no matter");
        for folder in [scratch.join("a"), scratch.join("a/b")] {
            assert_eq!(fs::metadata(folder).expect("a folder").permissions().mode() & 0o777, 0o700);
        }
    }

    #[test]
    fn no_name_leads_out_of_its_folder_and_no_two_share_one() {
        let names =
            ["", ".", "..", "a/b", "a:b", "/", "é", "ê", &"x".repeat(300), &"x".repeat(301), "a", "A.b-c_d"];
        let safe: std::collections::BTreeSet<String> = names.iter().map(|name| path_name(name)).collect();
        assert_eq!(safe.len(), names.len(), "{safe:?}");
        for name in safe {
            assert!(!name.contains('/') && !name.starts_with('.') && name.len() < 100, "{name}");
        }
    }
}
