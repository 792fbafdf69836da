//! What a host gets with this crate: no database, and nothing of the supervisor that needs one.

#![expect(clippy::disallowed_methods, reason = "cargo is no server, and is waited for")]

use std::process::Command;

#[test]
fn a_host_does_not_get_sqlite_with_the_client() {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR"));
    cargo.args(["tree", "--offline", "--edges", "normal,build", "--prefix", "none", "--all-features"]);
    let output = cargo.args(["--package", "moored-client"]).output().expect("cargo");
    let tree = String::from_utf8(output.stdout).expect("text");
    let names: Vec<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.contains(&"moored-launch"), "{}", String::from_utf8_lossy(&output.stderr));
    for unwanted in ["rusqlite", "libsqlite3-sys", "moored-supervisor", "moored-operator"] {
        assert!(!names.contains(&unwanted), "{tree}");
    }
}
