//! Real clients and servers, installed by `scripts/test` into the folder `fixtures` beside the profiles' folders.

use std::path::{Path, PathBuf};

/// Where they are installed.
///
/// # Panics
///
/// If the part is not there: then `scripts/test` would have left out the test that asks.
#[track_caller]
pub(crate) fn part(name: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder in the target folder");
    let part = target.join("fixtures").join(name);
    assert!(part.join("stamp").exists(), "`{}` is not installed: run `scripts/test` once", part.display());
    part.canonicalize().expect("a folder")
}

/// A file of this crate's own fixtures.
pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The argv of a server from npm: `server-everything` and the like.
#[track_caller]
pub(crate) fn node_server(name: &str) -> Vec<String> {
    let script = part("node").join("node_modules/@modelcontextprotocol").join(name).join("dist/index.js");
    vec!["node".into(), script.into_os_string().into_string().expect("text")]
}

/// The argv of a program in the virtual environment.
#[track_caller]
pub(crate) fn python_program(name: &str) -> Vec<String> {
    vec![part("python").join("bin").join(name).into_os_string().into_string().expect("text")]
}

/// The native binary of codex. Its launcher is a node program that adds a process and nothing else.
#[track_caller]
pub(crate) fn codex() -> PathBuf {
    let packages = part("codex").join("node_modules/@openai");
    let below = |folder: &Path| -> Vec<PathBuf> {
        std::fs::read_dir(folder).into_iter().flatten().map(|entry| entry.expect("an entry").path()).collect()
    };
    let vendors = below(&packages).into_iter().flat_map(|package| below(&package.join("vendor")));
    vendors
        .map(|vendor| vendor.join("bin/codex"))
        .find(|path| path.exists())
        .expect("codex for this platform")
}
