//! Which method is answered by what.

use serde_json::{Value, json};

use super::wire::{RpcError, Wire};
use super::{prompts, resources, tools};

const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The result of one request.
pub(super) fn result_of(wire: &Wire, method: &str, params: &Value) -> Result<Value, RpcError> {
    match method {
        "initialize" => Ok(initialize(params)),
        "ping" | "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => Ok(json!({})),
        "completion/complete" => Ok(
            json!({ "completion": { "values": ["paris", "park", "party"], "total": 3, "hasMore": false } }),
        ),
        "tools/list" => Ok(json!({ "tools": tools::list() })),
        "tools/call" => tools::call(wire, params),
        "resources/list" => Ok(json!({ "resources": resources::list() })),
        "resources/templates/list" => Ok(json!({ "resourceTemplates": resources::templates() })),
        "resources/read" => resources::read(params),
        "prompts/list" => Ok(json!({ "prompts": prompts::list() })),
        "prompts/get" => prompts::get(params),
        _ => Err((-32601, format!("method not found: {method}"), Value::Null)),
    }
}

fn initialize(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = LEGACY_REVISIONS.iter().find(|known| **known == asked);
    json!({
        "protocolVersion": version.unwrap_or(&LEGACY_REVISIONS[3]),
        "capabilities": {
            "tools": { "listChanged": true },
            "resources": { "subscribe": true, "listChanged": true },
            "prompts": { "listChanged": true },
            "logging": {},
            "completions": {},
        },
        "serverInfo": { "name": "conformance", "version": env!("CARGO_PKG_VERSION") },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_revision_gets_the_newest_legacy_one() {
        let version =
            |asked: &str| initialize(&json!({ "protocolVersion": asked }))["protocolVersion"].clone();
        assert_eq!(version("2025-06-18"), "2025-06-18");
        assert_eq!(version("2026-07-28"), "2025-11-25");
    }

    #[test]
    fn every_listed_tool_and_prompt_has_a_name_and_a_description() {
        let wire = Wire::default();
        for (method, key) in [("tools/list", "tools"), ("prompts/list", "prompts")] {
            let result = result_of(&wire, method, &Value::Null).expect("a list");
            for entry in result[key].as_array().expect("a list") {
                assert!(entry["name"].is_string() && entry["description"].is_string(), "{entry}");
            }
        }
    }
}
