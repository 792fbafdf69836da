//! Whether the program on disk is still the one that runs: its entry script or executable, by time and content.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use moored_containment::process::is_interpreter;
use moored_launch::stable_hash;

/// Longer ones are known by their time and length alone.
const HASHED: u64 = 16 << 20;

/// A file as it was when the server was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    path: PathBuf,
    changed: (i64, i64),
    length: u64,
    /// None of a long one.
    hash: Option<u64>,
}

impl Code {
    /// The code behind a command, if it is a file that can be found.
    pub(super) fn behind(command: &[OsString], cwd: &Path) -> Option<Self> {
        Self::of(entry(command, cwd)?)
    }

    fn of(path: PathBuf) -> Option<Self> {
        let found = fs::metadata(&path).ok().filter(fs::Metadata::is_file)?;
        let hash = if found.len() <= HASHED { Some(stable_hash(&fs::read(&path).ok()?)) } else { None };
        Some(Self { changed: (found.mtime(), found.mtime_nsec()), length: found.len(), hash, path })
    }

    /// What is newer on disk, in words.
    pub(super) fn stale(&self) -> Option<String> {
        let untouched = |found: fs::Metadata| {
            found.len() == self.length && (found.mtime(), found.mtime_nsec()) == self.changed
        };
        if fs::metadata(&self.path).is_ok_and(untouched) {
            return None;
        }
        let Some(now) = Self::of(self.path.clone()) else {
            return Some(format!("`{}` is gone from disk", self.path.display()));
        };
        let same = now.length == self.length
            && now.hash == self.hash
            && (now.hash.is_some() || now.changed == self.changed);
        if same {
            None
        } else {
            Some(format!("`{}` has changed on disk since the start", self.path.display()))
        }
    }
}

/// The script that an interpreter runs, else the executable.
fn entry(command: &[OsString], cwd: &Path) -> Option<PathBuf> {
    let (program, args) = command.split_first()?;
    let script = args.iter().filter(|arg| !arg.as_encoded_bytes().starts_with(b"-")).map(|arg| cwd.join(arg));
    if is_interpreter(program)
        && let Some(script) = script.into_iter().find(|path| path.is_file())
    {
        return Some(script);
    }
    executable(program, cwd)
}

fn executable(program: &OsStr, cwd: &Path) -> Option<PathBuf> {
    if program.as_encoded_bytes().contains(&b'/') {
        return Some(cwd.join(program));
    }
    std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::RunId;

    #[test]
    fn other_bytes_are_stale_and_a_touch_is_not() {
        let path = std::env::temp_dir().join(format!("moored-code-{}.py", RunId::generate()));
        fs::write(&path, "one").expect("a file");
        let command = ["python3".into(), "-u".into(), path.clone().into_os_string()];
        let code = Code::behind(&command, Path::new("/")).expect("a script");
        assert_eq!(code.path, path);
        fs::write(&path, "one").expect("a file");
        assert_eq!(code.stale(), None);
        fs::write(&path, "two").expect("a file");
        assert!(code.stale().is_some_and(|why| why.contains("has changed")));
        fs::remove_file(&path).expect("the file");
        assert!(code.stale().is_some_and(|why| why.contains("gone")));
    }
}
