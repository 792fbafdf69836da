//! Holes that were found in `run` by attacking it, each closed by a test under the number it was found by.
//!
//! - `busy_ends`: ends of runs whose own housekeeping takes long (F13);
//! - `clients`: clients whose files cannot be read, or whose first thread has ended (F2, F10);
//! - `crash_loops`: crash memory that outlives its minute, and that of other clients (F3);
//! - `last_calls`: a call that is followed by the end of the input (F5, F9);
//! - `sleep`: servers that are put to sleep too early, or never (F6, F12);
//! - `half_closes`: servers that close one of their pipes and live on (F7).

#![expect(clippy::disallowed_methods, reason = "clients under a mark, which ends what is left of them")]

mod busy_ends;
mod clients;
#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod crash_loops;
mod half_closes;
mod last_calls;
#[path = "../scenarios/seen.rs"]
mod seen;
mod sleep;

use serde_json::{Value, json};

/// A call of the tool `echo`.
fn call(id: u64, text: &str) -> Value {
    let params = json!({ "name": "echo", "arguments": { "text": text } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}
