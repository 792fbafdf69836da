//! Real servers, asked the same with and without moored: what comes back is compared byte by byte.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::chown;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::fixtures::{node_server, python_program};
use crate::common::scene::Scene;
use crate::common::wire::Wire;

/// A server and what it is asked. Each request waits for its answer, so that the order of the answers is the server's.
struct Exchange {
    server: Vec<OsString>,
    env: Vec<(&'static str, PathBuf)>,
    requests: Vec<Value>,
}

impl Exchange {
    fn new(server: Vec<String>) -> Self {
        Self { server: server.into_iter().map(Into::into).collect(), env: Vec::new(), requests: Vec::new() }
    }

    fn ask(mut self, method: &str, params: Value) -> Self {
        self.requests.push(json!({
            "jsonrpc": "2.0", "id": self.requests.len() + 1, "method": method, "params": params,
        }));
        self
    }

    fn call(self, tool: &str, arguments: Value) -> Self {
        self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    /// All that the server writes, from its start to its end at EOF, and its exit code.
    fn record(&self, mut command: Command) -> (Vec<u8>, Option<i32>) {
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let mut wire = Wire::start(command);
        wire.initialize();
        for request in &self.requests {
            wire.write_line(request);
            let answer = wire.answer_to(&request["id"]);
            assert!(answer.get("result").is_some(), "{request}: {answer}");
        }
        let (status, bytes) = wire.finish();
        (bytes, status.code())
    }

    /// Both ways, for each user. `prepare` sets the scene anew before each of the two.
    fn assert_same(make: impl Fn(&Scene) -> Self) {
        for scene in Scene::all() {
            let directly = make(&scene);
            let (program, args) = directly.server.split_first().expect("a command");
            let (expected, code) = directly.record(scene.command(program, args));
            let through = make(&scene);
            let scene = scene.server(through.server.clone());
            let (seen, code_seen) = through.record(scene.run_command());
            assert_eq!(
                String::from_utf8_lossy(&seen),
                String::from_utf8_lossy(&expected),
                "{:?}",
                scene.user
            );
            assert!(seen == expected && expected.len() > 100);
            assert_eq!(code_seen, code);
            scene.assert_clean();
        }
    }
}

/// A folder of the scene's user with that file in it and nothing else.
fn folder_with(scene: &Scene, name: &str, text: &str) -> PathBuf {
    let folder = scene.scratch.join("files");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join(name), text).expect("a file");
    for path in [folder.clone(), folder.join(name)] {
        chown(path, Some(scene.user.uid()), Some(scene.user.gid())).expect("ours to give away");
    }
    folder
}

/// It tells its pid and its uptime nowhere in these answers.
#[test]
fn server_everything_is_the_same_needs_node() {
    Exchange::assert_same(|_| {
        Exchange::new(node_server("server-everything"))
            .ask("ping", json!({}))
            .ask("tools/list", json!({}))
            .ask("prompts/list", json!({}))
            .ask("resources/templates/list", json!({}))
            .call("echo", json!({ "message": "héllo \u{1F6A2} \"quoted\" \\ and a \u{2028}" }))
            .call("get-sum", json!({ "a": 2, "b": 40 }))
            .call("get-tiny-image", json!({}))
    });
}

#[test]
fn server_filesystem_is_the_same_needs_node() {
    Exchange::assert_same(|scene| {
        let folder = folder_with(scene, "a.txt", "line one\nline two, ünïcode\n");
        let path = |name: &str| folder.join(name).display().to_string();
        let mut server = node_server("server-filesystem");
        server.push(folder.display().to_string());
        Exchange::new(server)
            .ask("tools/list", json!({}))
            .call("read_text_file", json!({ "path": path("a.txt") }))
            .call("write_file", json!({ "path": path("b.txt"), "content": "b".repeat(300_000) }))
            .call("read_text_file", json!({ "path": path("b.txt") }))
            .call("list_directory", json!({ "path": folder.display().to_string() }))
            .call("read_text_file", json!({ "path": "/etc/shadow" }))
    });
}

#[test]
fn server_memory_is_the_same_needs_node() {
    Exchange::assert_same(|scene| {
        let folder = folder_with(scene, "unused", "");
        let entity = json!({ "name": "moored", "entityType": "program", "observations": ["runs servers"] });
        let mut exchange = Exchange::new(node_server("server-memory"))
            .ask("tools/list", json!({}))
            .call("create_entities", json!({ "entities": [entity] }))
            .call("read_graph", json!({}))
            .call("search_nodes", json!({ "query": "servers" }));
        exchange.env.push(("MEMORY_FILE_PATH", folder.join("memory.json")));
        exchange
    });
}

/// Its `get_current_time` gives the second, so it is asked what does not depend on the time of day. A conversion does
/// on the day, by daylight saving; between two zones without it, it does not, but for the date: so the date is the one
/// thing that could differ, at midnight.
#[test]
fn mcp_server_time_is_the_same_needs_python() {
    Exchange::assert_same(|_| {
        let times =
            json!({ "source_timezone": "Asia/Tokyo", "time": "12:30", "target_timezone": "Asia/Kolkata" });
        let mut server = python_program("mcp-server-time");
        server.push("--local-timezone=UTC".into());
        Exchange::new(server).ask("tools/list", json!({})).call("convert_time", times)
    });
}
