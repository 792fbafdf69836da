//! The prompts that the suites get by name.

use serde_json::{Value, json};

use super::PNG;
use super::wire::RpcError;

pub(super) fn list() -> Vec<Value> {
    let argument = |name: &str| json!({ "name": name, "description": format!("The {name} of the test"), "required": true });
    let prompt = |name: &str, description: &str, arguments: &[&str]| {
        let arguments: Vec<_> = arguments.iter().map(|name| argument(name)).collect();
        json!({ "name": name, "description": description, "arguments": arguments })
    };
    vec![
        prompt("test_simple_prompt", "No arguments", &[]),
        prompt("test_prompt_with_arguments", "Two arguments", &["arg1", "arg2"]),
        prompt("test_prompt_with_embedded_resource", "Embeds a resource", &["resourceUri"]),
        prompt("test_prompt_with_image", "Has an image", &[]),
    ]
}

pub(super) fn get(params: &Value) -> Result<Value, RpcError> {
    let argument = |name: &str| params["arguments"][name].as_str().unwrap_or_default();
    let contents = match params["name"].as_str().unwrap_or_default() {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (argument("arg1"), argument("arg2"));
            vec![text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => {
            let inner = json!({ "uri": argument("resourceUri"), "mimeType": "text/plain", "text": "Embedded, for testing." });
            vec![
                json!({ "type": "resource", "resource": inner }),
                text("Please process the embedded resource above."),
            ]
        }
        "test_prompt_with_image" => {
            vec![
                json!({ "type": "image", "data": PNG, "mimeType": "image/png" }),
                text("Please analyze the image above."),
            ]
        }
        unknown => return Err((-32602, format!("unknown prompt: {unknown}"), Value::Null)),
    };
    let messages: Vec<_> =
        contents.into_iter().map(|content| json!({ "role": "user", "content": content })).collect();
    Ok(json!({ "messages": messages }))
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}
