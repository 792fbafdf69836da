//! The tools that the suites call by name.

use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use super::wire::{RpcError, Wire};
use super::{PNG, elicitations};

/// Between two notifications of one call, so that a client sees them one by one.
const BETWEEN_NOTIFICATIONS: Duration = Duration::from_millis(50);
/// Longer than any gateway waits before it streams.
const RECONNECTION: Duration = Duration::from_millis(250);

/// Every tool as it is listed.
pub(super) fn list() -> Vec<Value> {
    let nothing = json!({ "type": "object", "properties": {} });
    let text = |name: &str| json!({ "type": "object", "properties": { name: { "type": "string" } }, "required": [name] });
    let tool = |name: &str, description: &str, schema: &Value| json!({ "name": name, "description": description, "inputSchema": schema });
    vec![
        tool("test_simple_text", "Returns text", &nothing),
        tool("test_image_content", "Returns an image", &nothing),
        tool("test_audio_content", "Returns audio", &nothing),
        tool("test_embedded_resource", "Returns a resource", &nothing),
        tool("test_multiple_content_types", "Returns text, an image and a resource", &nothing),
        tool("test_tool_with_logging", "Logs three times on its way", &nothing),
        tool("test_tool_with_progress", "Reports progress three times on its way", &nothing),
        tool("test_error_handling", "Always fails", &nothing),
        tool("test_reconnection", "Takes so long that its answer is streamed", &nothing),
        tool("test_sampling", "Asks the client for a completion", &text("prompt")),
        tool("test_elicitation", "Asks the client's user", &text("message")),
        tool("test_elicitation_sep1034_defaults", "Asks with a default for each type", &nothing),
        tool("test_elicitation_sep1330_enums", "Asks with each form of a choice", &nothing),
        tool("json_schema_2020_12_tool", "Has a schema with the newer keywords", &newer_keywords()),
    ]
}

fn newer_keywords() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": { "properties": { "contactMethod": { "const": "phone" } }, "required": ["contactMethod"] },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    })
}

/// Calls one of them.
pub(super) fn call(wire: &Wire, params: &Value) -> Result<Value, RpcError> {
    let arguments = &params["arguments"];
    let content = match params["name"].as_str().unwrap_or_default() {
        "test_simple_text" => vec![text("This is a simple text response for testing.")],
        "test_image_content" => vec![image()],
        "test_audio_content" => vec![json!({ "type": "audio", "data": silence(), "mimeType": "audio/wav" })],
        "test_embedded_resource" => {
            vec![resource("test://embedded-resource", "text/plain", "An embedded resource.")]
        }
        "test_multiple_content_types" => vec![
            text("Several kinds of content:"),
            image(),
            resource("test://mixed-content-resource", "application/json", r#"{"test":"data","value":123}"#),
        ],
        "test_tool_with_logging" => log_three_times(wire),
        "test_tool_with_progress" => progress_three_times(wire, params),
        "test_error_handling" => {
            let content = [text("This tool intentionally returns an error for testing")];
            return Ok(json!({ "content": content, "isError": true }));
        }
        "test_reconnection" => {
            sleep(RECONNECTION);
            vec![text("The answer of a call that took long.")]
        }
        "test_sampling" => vec![text(&sample(wire, arguments))],
        "test_elicitation" => vec![text(&elicitations::ask_user(wire, arguments))],
        "test_elicitation_sep1034_defaults" => vec![text(&elicitations::ask_with_defaults(wire))],
        "test_elicitation_sep1330_enums" => vec![text(&elicitations::ask_with_choices(wire))],
        "json_schema_2020_12_tool" => vec![text(&format!("called with {arguments}"))],
        unknown => return Err((-32602, format!("unknown tool: {unknown}"), Value::Null)),
    };
    Ok(json!({ "content": content }))
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn image() -> Value {
    json!({ "type": "image", "data": PNG, "mimeType": "image/png" })
}

fn resource(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}

/// A WAV file with no sample in it.
fn silence() -> &'static str {
    "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
}

fn log_three_times(wire: &Wire) -> Vec<Value> {
    for (index, said) in ["started", "processing data", "completed"].into_iter().enumerate() {
        if index > 0 {
            sleep(BETWEEN_NOTIFICATIONS);
        }
        wire.notify(
            "notifications/message",
            json!({ "level": "info", "data": format!("Tool execution {said}") }),
        );
    }
    vec![text("Logged three times.")]
}

fn progress_three_times(wire: &Wire, params: &Value) -> Vec<Value> {
    let token = &params["_meta"]["progressToken"];
    for (index, progress) in [0, 50, 100].into_iter().enumerate() {
        if index > 0 {
            sleep(BETWEEN_NOTIFICATIONS);
        }
        if !token.is_null() {
            let step = format!("Completed step {progress} of 100");
            let params =
                json!({ "progressToken": token, "progress": progress, "total": 100, "message": step });
            wire.notify("notifications/progress", params);
        }
    }
    vec![text(&format!("Progress for {token}."))]
}

fn sample(wire: &Wire, arguments: &Value) -> String {
    let asked = wire.ask(
        "sampling/createMessage",
        json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": arguments["prompt"] } }], "maxTokens": 100 }),
    );
    match asked {
        Ok(result) => format!("LLM response: {}", result["content"]["text"].as_str().unwrap_or("none")),
        Err(reason) => format!("Sampling failed: {reason}"),
    }
}
