//! What a session does by rule while its client lives: sleep and wake, few instances, crashes, and what it shows of
//! itself. `abandoned` re-enacts the leaks; here each rule is held to its word.
//!
//! - `sleep`: `--idle`, `--max-lifetime`, stale code, what is said again on waking (S24, S38);
//! - `superseded`: those that a newer instance for the same client has replaced (S13 to S17);
//! - `limits`: `--max-instances` and those who are busy (S13, S14, S17, S20, S42);
//! - `crashes`: `--restart on-crash` and crash loops (S19, S41);
//! - `half_lines`: servers that end in the middle of a line, and have a successor;
//! - `extras`: `--pid-file`, `--info-tool`, `--keep`.

mod crashes;
mod extras;
mod half_lines;
mod limits;
mod sleep;
mod superseded;

use std::fs;

use moored_testkit::wait_until;
use serde_json::{Value, json};

use crate::common::DEADLINE;
use crate::common::scene::Scene;
use crate::seen::{finish_all, ps, servers, start, wait_until_awake};

/// Waits until that row of `moored ps` is in that state.
#[track_caller]
fn wait_until_state(scene: &Scene, row: usize, state: &str) {
    wait_until(&format!("row {row} is {state}"), DEADLINE, || {
        ps(scene).get(row).is_some_and(|row| row["state"] == state).then_some(())
    });
}

/// What `moored inspect` says of the row of `moored ps` with that number.
#[track_caller]
fn inspect(scene: &Scene, row: usize) -> Value {
    let id = ps(scene)[row]["id"].as_str().expect("an id").to_owned();
    let output = scene.moored(["inspect", &id, "--json"]);
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// The events of that kind.
fn events(scene: &Scene, name: &str) -> Vec<Value> {
    scene.events().into_iter().filter(|event| event["event"] == name).collect()
}

fn call(id: u64, text: &str) -> Value {
    let params = json!({ "name": "echo", "arguments": { "text": text } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

/// A server that writes down every line that it hears, offers the tools in the file `tools`, and says `yes` to the rest.
/// A call of the tool `start` starts a process.
const LISTENER: &str = r#"
while IFS= read -r line; do
  printf '%s\n' "$line" >>heard
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"listener","version":"7.1"}}';;
    *'"method":"tools/list"'*) result="{\"tools\":[$(cat tools)]}";;
    *'"name":"start"'*) sleep 600 & result='{}';;
    *'"method":"subscriptions/listen"'*)
      streams="$streams $id"
      printf '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s}}}\n' "$id"
      continue;;
    *'"id":'*) result='{}';;
    *) continue;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
for id in $streams; do printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id"; done
"#;

/// A scene whose server is the listener. What it offers and hears is in the scratch folder.
fn listening(scene: Scene) -> Scene {
    fs::write(scene.scratch.join("listener.sh"), LISTENER).expect("a script");
    offer(&scene, &["echo"]);
    scene.server(["sh", "listener.sh"])
}

fn offer(scene: &Scene, tools: &[&str]) {
    let tools: Vec<String> = tools
        .iter()
        .map(|name| json!({ "name": name, "inputSchema": { "type": "object" } }).to_string())
        .collect();
    fs::write(scene.scratch.join("tools"), tools.join(",")).expect("a file");
}

/// The methods of all that the listener has heard since it was last asked.
fn heard(scene: &Scene) -> Vec<String> {
    let path = scene.scratch.join("heard");
    let text = fs::read_to_string(&path).unwrap_or_default();
    // Emptied, not removed: the user's own file stays the user's.
    fs::write(&path, "").expect("a file");
    let method = |line: &str| serde_json::from_str::<Value>(line).expect("JSON")["method"].clone();
    text.lines().map(|line| method(line).as_str().unwrap_or_default().to_owned()).collect()
}

/// Waits until nothing of the scene is alive but so many processes.
#[track_caller]
fn wait_until_alive(scene: &Scene, count: usize) {
    wait_until(&format!("{count} are alive"), DEADLINE, || (scene.mark.alive().len() == count).then_some(()));
}
