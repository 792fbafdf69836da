//! What the tools ask the client's user for, and how they tell of the answer.

use serde_json::{Value, json};

use super::wire::Wire;

pub(super) fn ask_user(wire: &Wire, arguments: &Value) -> String {
    let response = json!({ "type": "string", "description": "User's response" });
    let properties = json!({ "response": response });
    elicit(
        wire,
        &arguments["message"],
        json!({ "type": "object", "properties": properties, "required": ["response"] }),
    )
}

/// One field of each type, each with a default.
pub(super) fn ask_with_defaults(wire: &Wire) -> String {
    let properties = json!({
        "name": { "type": "string", "description": "User name", "default": "John Doe" },
        "age": { "type": "integer", "description": "User age", "default": 30 },
        "score": { "type": "number", "description": "User score", "default": 95.5 },
        "status": { "type": "string", "enum": ["active", "inactive", "pending"], "default": "active" },
        "verified": { "type": "boolean", "description": "Verified", "default": true },
    });
    let schema = json!({ "type": "object", "properties": properties, "required": [] });
    elicit(wire, &json!("Please review the fields"), schema)
}

/// The five forms in which a choice can be described.
pub(super) fn ask_with_choices(wire: &Wire) -> String {
    let titled = |noun: &str| -> Vec<Value> {
        let ordinals = ["First", "Second", "Third"].into_iter().enumerate();
        ordinals
            .map(|(index, ordinal)| json!({ "const": format!("value{}", index + 1), "title": format!("{ordinal} {noun}") }))
            .collect()
    };
    let options = json!(["option1", "option2", "option3"]);
    let properties = json!({
        "untitledSingle": { "type": "string", "enum": options },
        "titledSingle": { "type": "string", "oneOf": titled("Option") },
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": { "type": "array", "minItems": 1, "maxItems": 3, "items": { "type": "string", "enum": options } },
        "titledMulti": { "type": "array", "minItems": 1, "maxItems": 3, "items": { "anyOf": titled("Choice") } },
    });
    let schema = json!({ "type": "object", "properties": properties, "required": [] });
    elicit(wire, &json!("Please choose"), schema)
}

fn elicit(wire: &Wire, message: &Value, schema: Value) -> String {
    match wire.ask("elicitation/create", json!({ "message": message, "requestedSchema": schema })) {
        Ok(result) => {
            let action = result["action"].as_str().unwrap_or("none");
            format!("Elicitation completed: action={action}, content={}", result["content"])
        }
        Err(reason) => format!("Elicitation failed: {reason}"),
    }
}
