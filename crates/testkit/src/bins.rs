//! Where the test programs lie: beside the running test, built when missing or stale, and copied to where any user can
//! run them.
//!
//! Cargo builds the bins of a dev-dependency for nobody, so the first test that needs one builds it, with the target
//! folder and the profile of the running test. A checkout may lie in a folder that a plain user cannot enter (`/root`),
//! so what is returned is a copy under `/tmp`, named for the build that it is a copy of.

#![expect(clippy::disallowed_methods, reason = "cargo and cp are no servers, and are waited for")]

mod copies;

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::SystemTime;

/// A program of this crate, such as `misbehave`.
///
/// # Panics
///
/// If it cannot be built.
pub fn bin(name: &str) -> PathBuf {
    bin_of(env!("CARGO_PKG_NAME"), name)
}

/// A program of any package of this workspace.
///
/// # Panics
///
/// If it cannot be built.
pub fn bin_of(package: &str, name: &str) -> PathBuf {
    find(Artifact { package: package.to_owned(), name: name.to_owned(), kind: Kind::Bin })
}

/// An example of any package of this workspace.
///
/// # Panics
///
/// If it cannot be built.
pub fn example(package: &str, name: &str) -> PathBuf {
    find(Artifact { package: package.to_owned(), name: name.to_owned(), kind: Kind::Example })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Bin,
    Example,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Artifact {
    package: String,
    name: String,
    kind: Kind,
}

/// Looks once per process. The lock is held while cargo builds: other threads would only queue at cargo's own lock.
fn find(artifact: Artifact) -> PathBuf {
    static FOUND: Mutex<Option<HashMap<Artifact, PathBuf>>> = Mutex::new(None);
    let mut found = FOUND.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let known = found.get_or_insert_default();
    if let Some(path) = known.get(&artifact) {
        return path.clone();
    }
    let profile = Profile::of_running_test();
    let built = match artifact.kind {
        Kind::Bin => profile.folder.join(&artifact.name),
        Kind::Example => profile.folder.join("examples").join(&artifact.name),
    };
    if !is_fresh(&built) {
        profile.build(&artifact);
    }
    let copy = copies::for_everyone(&built)
        .unwrap_or_else(|error| panic!("`{}` cannot be copied for all users: {error}", built.display()));
    known.insert(artifact, copy.clone());
    copy
}

/// When a file was modified last. A build script may name a whole folder, which is as new as the newest file in it.
fn modified(path: &Path) -> io::Result<SystemTime> {
    let metadata = fs::metadata(path)?;
    let mut newest = metadata.modified()?;
    if metadata.is_dir() {
        for entry in fs::read_dir(path)? {
            newest = newest.max(modified(&entry?.path())?);
        }
    }
    Ok(newest)
}

/// Whether the file is there and no source of it is newer. Cargo's dep-info beside it names the sources.
fn is_fresh(built: &Path) -> bool {
    let Ok(built_at) = modified(built) else { return false };
    let Ok(dep_info) = fs::read_to_string(built.with_extension("d")) else { return false };
    let Some((_, sources)) = dep_info.trim_end().split_once(": ") else { return false };
    // A space within a path is escaped; the placeholder cannot stand in a path.
    let sources = sources.replace("\\ ", "\0");
    sources
        .split_whitespace()
        .all(|source| modified(Path::new(&source.replace('\0', " "))).is_ok_and(|at| at <= built_at))
}

/// Where cargo put the running test, and so how it was called.
#[derive(Debug)]
struct Profile {
    folder: PathBuf,
    name: String,
    target_dir: PathBuf,
    triple: Option<String>,
}

impl Profile {
    fn of_running_test() -> Self {
        let test = std::env::current_exe().expect("the path of the running test");
        Self::of(&test).unwrap_or_else(|| panic!("`{}` lies in no target folder of cargo", test.display()))
    }

    /// `TARGET/[TRIPLE/]PROFILE/[deps/]NAME`.
    fn of(test: &Path) -> Option<Self> {
        let parent = test.parent()?;
        let is_inner = ["deps", "examples"].iter().any(|inner| parent.ends_with(inner));
        let folder = if is_inner { parent.parent()? } else { parent };
        let above = folder.parent()?;
        let is_target_dir = above.join("CACHEDIR.TAG").exists();
        let (target_dir, triple) = if is_target_dir {
            (above, None)
        } else {
            (above.parent()?, Some(above.file_name()?.to_str()?.to_owned()))
        };
        let name = match folder.file_name()?.to_str()? {
            "debug" => "dev",
            other => other,
        };
        Some(Self { folder: folder.into(), name: name.into(), target_dir: target_dir.into(), triple })
    }

    fn build(&self, artifact: &Artifact) {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let kind = match artifact.kind {
            Kind::Bin => "--bin",
            Kind::Example => "--example",
        };
        let mut command = Command::new(cargo);
        command.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null());
        // An example may need a feature that is not a default one.
        command.args(["build", "--quiet", "--package", &artifact.package, "--all-features"]);
        command.args([kind, &artifact.name]);
        command.args(["--profile", &self.name]).arg("--target-dir").arg(&self.target_dir);
        command.args(self.triple.iter().flat_map(|triple| ["--target", triple]));
        let output = command.output().expect("cargo, to build what the test needs");
        assert!(output.status.success(), "{artifact:?}:\n{}", String::from_utf8_lossy(&output.stderr));
    }
}
