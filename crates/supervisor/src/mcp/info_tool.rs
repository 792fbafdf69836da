//! `get_server_info`: one more tool among the server's own, which we answer ourselves.
//!
//! Only the bytes that must change do: the tool is put in front of the closing bracket of the list, and everything else
//! of the answer stays as the server wrote it.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The tool's name.
pub(crate) const NAME: &str = "get_server_info";

/// What a list of tools says about ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// The server has one of that name, and keeps it.
    ServersOwn,
    /// The list with ours added.
    Added(Vec<u8>),
    /// Not the last page, or no list: as it is.
    Untouched,
}

/// Adds the tool to an answer to `tools/list`.
pub(crate) fn add_to(line: &[u8]) -> Listed {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        result: Page<'a>,
    }
    #[derive(Deserialize)]
    struct Page<'a> {
        #[serde(borrow)]
        tools: &'a RawValue,
        #[serde(rename = "nextCursor")]
        next: Option<String>,
    }
    #[derive(Deserialize)]
    struct Tool {
        name: String,
    }
    let Ok(Answer { result }) = serde_json::from_slice::<Answer<'_>>(line) else { return Listed::Untouched };
    let Ok(tools) = serde_json::from_str::<Vec<Tool>>(result.tools.get()) else { return Listed::Untouched };
    if tools.iter().any(|tool| tool.name == NAME) {
        return Listed::ServersOwn;
    }
    if result.next.is_some() {
        return Listed::Untouched;
    }
    // Borrowed from the line, so its place there is known.
    let begin = result.tools.get().as_ptr() as usize - line.as_ptr() as usize;
    let bracket = begin + result.tools.get().len() - 1;
    let comma = if tools.is_empty() { "" } else { "," };
    let ours = format!("{comma}{}", definition());
    Listed::Added([&line[..bracket], ours.as_bytes(), &line[bracket..]].concat())
}

fn definition() -> Value {
    json!({
        "name": NAME,
        "description": "How this MCP server is running: its version, process id, uptime, and the other instances of it on \
                        this machine. Answered by moored, not by the server.",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": true, "idempotentHint": true, "openWorldHint": false},
    })
}

/// Whether a `tools/call` is for this tool.
pub(crate) fn is_called_by(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Call {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        name: String,
    }
    memchr::memmem::find(line, NAME.as_bytes()).is_some()
        && serde_json::from_slice::<Call>(line).is_ok_and(|call| call.params.name == NAME)
}

/// The answer to such a call.
pub(crate) fn answer(id: &[u8], info: &Value) -> Vec<u8> {
    let result = json!({
        "content": [{"type": "text", "text": info.to_string()}],
        "structuredContent": info,
        "isError": false,
    });
    let mut line = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    line.extend_from_slice(id);
    line.extend_from_slice(format!(",\"result\":{result}}}\n").as_bytes());
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tool_is_added_and_nothing_else_is_changed() {
        let line = br#"{ "result": {"x":1.0,"tools":[ {"name":"a", "n":1e400} ], "_meta":{}}, "id": 1}"#;
        let Listed::Added(added) = add_to(line) else { panic!("it is the last page") };
        let text = String::from_utf8(added).expect("text");
        assert!(text.starts_with(r#"{ "result": {"x":1.0,"tools":[ {"name":"a", "n":1e400} ,{"#), "{text}");
        assert!(text.ends_with(r#"], "_meta":{}}, "id": 1}"#), "{text}");
    }

    #[test]
    fn a_server_that_has_such_a_tool_keeps_its_own() {
        assert_eq!(
            add_to(br#"{"id":1,"result":{"tools":[{"name":"get_server_info"}]}}"#),
            Listed::ServersOwn
        );
    }

    #[test]
    fn only_the_last_page_gets_it_and_an_empty_one_too() {
        assert_eq!(add_to(br#"{"id":1,"result":{"tools":[],"nextCursor":"x"}}"#), Listed::Untouched);
        assert!(matches!(add_to(br#"{"id":1,"result":{"tools":[]}}"#), Listed::Added(_)));
    }

    #[test]
    fn a_call_of_another_tool_that_mentions_it_is_not_for_us() {
        let call = |name: &str| {
            format!(
                r#"{{"method":"tools/call","params":{{"name":"{name}","arguments":{{"a":"get_server_info"}}}}}}"#
            )
        };
        assert!(is_called_by(call("get_server_info").as_bytes()));
        assert!(!is_called_by(call("other").as_bytes()));
    }
}
