//! codex as the client: a program of its own, with habits of its own. Its app server starts the MCP servers of its config
//! to tell their status, without any login.

use std::fs;
use std::os::unix::fs::chown;
use std::process::{Command, Stdio};

use moored_containment::ProcessIdentity;
use moored_testkit::{User, wait::wait_for_file, wait_until};
use rustix::process::Signal;
use serde_json::json;

use crate::common::scene::Scene;
use crate::common::wire::Wire;
use crate::common::{AFTER_ANYTHING, DEADLINE, fixtures, send};

/// The app server, with the scene's command line as its one MCP server, asked for its status.
fn app_server(scene: &Scene) -> Wire {
    let home = scene.scratch.join("codex");
    fs::create_dir(&home).expect("a folder");
    let argv: Vec<_> = scene.argv().iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (runtime, state) = (scene.runtime_dir(), scene.state_dir());
    // What JSON calls a string or a list of them is one in TOML too. It shall not look for its makers.
    let config = format!(
        "check_for_update_on_startup = false\n[analytics]\nenabled = false\n[mcp_servers.moored]\ncommand = {}\n\
         args = {}\n[mcp_servers.moored.env]\nMOORED_RUNTIME_DIR = {}\nMOORED_STATE_DIR = {}\n",
        json!(argv[0]),
        json!(argv[1..]),
        json!(runtime.to_string_lossy()),
        json!(state.to_string_lossy()),
    );
    fs::write(home.join("config.toml"), config).expect("a file");
    for path in [home.clone(), home.join("config.toml")] {
        chown(path, Some(scene.user.uid()), Some(scene.user.gid())).expect("ours to give away");
    }
    let mut command: Command = scene.command(fixtures::codex(), ["app-server"]);
    command.env("CODEX_HOME", home).stderr(Stdio::null());
    let mut wire = Wire::start(command);
    wire.ask(1, "initialize", json!({ "clientInfo": { "name": "moored", "title": null, "version": "1" } }));
    wire.write_line(&json!({ "jsonrpc": "2.0", "method": "initialized" }));
    wire.write_line(&json!({ "jsonrpc": "2.0", "id": 2, "method": "mcpServerStatus/list", "params": {} }));
    wire
}

#[test]
fn s21_the_probe_of_codex_is_answered_and_leaves_nothing_needs_codex() {
    for user in User::available() {
        let scene = Scene::new(user).misbehave(["--ignore-eof", "--daemon"]);
        let mut codex = app_server(&scene);
        let status = codex.answer_to(&json!(2));
        assert_eq!(status["result"]["data"][0]["serverInfo"]["name"], "misbehave", "{status}");
        assert!(status["result"]["data"][0]["tools"]["echo"].is_object(), "{status}");
        let own = codex.child.id();
        wait_until("only codex is left", AFTER_ANYTHING, || {
            scene
                .mark
                .alive()
                .iter()
                .all(|one| one.pid == own || one.ppid == own && one.comm != "moored")
                .then_some(())
        });
        codex.close_stdin();
        codex.exit();
        // codex kills moored's group 2 s after its SIGTERM, which may be before moored has removed its own files.
        scene.assert_nobody();
    }
}

#[test]
fn s01_a_killed_codex_leaves_nothing_needs_codex() {
    for user in User::available() {
        // Slow to answer, so that codex is waiting for it when it is killed.
        let scene = Scene::new(user).misbehave(["--ignore-eof", "--daemon", "--slow-start", "30000"]);
        let mut codex = app_server(&scene);
        wait_for_file(&scene.ready_file(), DEADLINE);
        assert!(send(&ProcessIdentity::of(codex.child.id()).expect("our child"), Signal::KILL));
        codex.exit();
        let left = scene.mark.wait_until_none(AFTER_ANYTHING);
        assert!(left.is_ok(), "{user:?}: {left:#?}");
        scene.assert_clean();
    }
}
