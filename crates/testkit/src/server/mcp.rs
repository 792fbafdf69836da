//! The few MCP methods that the server answers, one JSON object a line. Pure: a line in, at most a line out.

use serde_json::{Value, json};

/// What goes back for one message.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    /// The line, with its newline.
    pub(super) text: String,
    /// Whether it answers a `tools/call`; crashes are counted by these.
    pub(super) was_call: bool,
}

/// Answers one line; notifications, responses and blank lines get nothing.
pub(super) fn answer(line: &str) -> Option<Answer> {
    if line.trim().is_empty() {
        return None;
    }
    let Ok(message) = serde_json::from_str::<Value>(line) else {
        return Some(envelope(&Value::Null, "", Err((-32700, "parse error".to_owned()))));
    };
    let method = message.get("method")?.as_str()?;
    let id = message.get("id")?;
    let params = message.get("params").unwrap_or(&Value::Null);
    Some(envelope(id, method, result_of(method, params)))
}

fn result_of(method: &str, params: &Value) -> Result<Value, (i32, String)> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": params.get("protocolVersion").cloned().unwrap_or_else(|| "2025-06-18".into()),
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "misbehave", "version": env!("CARGO_PKG_VERSION") },
        })),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": [echo_tool()] })),
        "tools/call" => call(params),
        _ => Err((-32601, format!("method not found: {method}"))),
    }
}

fn echo_tool() -> Value {
    json!({
        "name": "echo",
        "description": "Returns the text it is given",
        "inputSchema": {
            "type": "object",
            "properties": { "text": { "type": "string" } },
            "required": ["text"],
        },
    })
}

fn call(params: &Value) -> Result<Value, (i32, String)> {
    let name = params["name"].as_str().unwrap_or_default();
    if name != "echo" {
        return Err((-32602, format!("unknown tool: {name}")));
    }
    let text = params["arguments"]["text"].as_str().unwrap_or_default();
    Ok(json!({ "content": [{ "type": "text", "text": text }], "isError": false }))
}

fn envelope(id: &Value, method: &str, result: Result<Value, (i32, String)>) -> Answer {
    let message = match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err((code, message)) => {
            json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
        }
    };
    Answer { text: format!("{message}\n"), was_call: method == "tools/call" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(message: Value) -> Value {
        let answer = answer(&message.to_string()).expect("an answer");
        assert!(answer.text.ends_with('\n') && answer.text.lines().count() == 1);
        serde_json::from_str(&answer.text).unwrap()
    }

    #[test]
    fn initialize_echoes_the_version_asked_for() {
        let params = json!({ "protocolVersion": "2025-11-25" });
        let answer = ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
        assert_eq!(answer["result"]["protocolVersion"], "2025-11-25");
        assert_eq!(answer["id"], 0);
    }

    #[test]
    fn echo_returns_its_text_and_counts_as_a_call() {
        let line = r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;
        let answer = answer(line).unwrap();
        assert!(answer.was_call);
        assert!(answer.text.contains(r#""text":"hi""#), "{}", answer.text);
    }

    #[test]
    fn notifications_and_responses_get_no_answer() {
        for line in ["", r#"{"method":"notifications/initialized"}"#, r#"{"id":1,"result":{}}"#] {
            assert_eq!(answer(line), None);
        }
    }

    #[test]
    fn an_unknown_method_is_32601() {
        assert_eq!(ask(json!({ "id": 1, "method": "resources/list" }))["error"]["code"], -32601);
    }
}
