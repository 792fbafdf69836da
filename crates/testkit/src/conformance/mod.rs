//! The bin `conformance`: a well-behaved stdio MCP server of the legacy era that has every tool, resource and prompt which the
//! suites of `@modelcontextprotocol/conformance` call by name. What a suite finds fault with is then the gateway before it.
//!
//! ```text
//! stdin ──▶ main thread ──▶ a request: a thread of its own ──▶ stdout
//!                      └──▶ an answer to one of our requests: the thread that waits for it
//! ```
//!
//! - `wire`: stdout, and requests of ours that wait for the client's answer.
//! - `methods`: which method is answered by what.
//! - `tools`, `elicitations`, `resources`, `prompts`: what there is.
//!
//! `--slow-lists MS` delays the answers to `tools/list`. A gateway may answer with JSON or with an SSE stream, and a suite tests
//! several streams at once (`server-sse-streams-functional`) only if it is given streams. It asks for them by three calls of
//! `tools/list`. moored streams what does not come within 100 ms, so the script that runs the suites makes the list slow.

mod elicitations;
mod methods;
mod prompts;
mod resources;
mod tools;
mod wire;

use std::io::{self, BufRead as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use wire::Wire;

/// A PNG of one red pixel.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// The whole bin: answers until stdin ends.
pub fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let slow_lists = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => Some(0),
        ["--slow-lists", millis] => millis.parse().ok(),
        _ => None,
    };
    let Some(slow_lists) = slow_lists.map(Duration::from_millis) else {
        use std::io::Write as _;
        let _ = writeln!(io::stderr(), "usage: conformance [--slow-lists MS]");
        return ExitCode::from(2);
    };
    let wire = Arc::new(Wire::default());
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        handle(&wire, message, slow_lists);
    }
    ExitCode::SUCCESS
}

fn handle(wire: &Arc<Wire>, message: Value, slow_lists: Duration) {
    let Some(method) = message["method"].as_str().map(str::to_owned) else {
        wire.answered(message);
        return;
    };
    // No notification of a client asks for anything here.
    let Some(id) = message.get("id").cloned() else { return };
    let wire = Arc::clone(wire);
    std::thread::spawn(move || {
        if method == "tools/list" {
            std::thread::sleep(slow_lists);
        }
        let result = methods::result_of(&wire, &method, &message["params"]);
        wire.answer(&id, result);
    });
}
