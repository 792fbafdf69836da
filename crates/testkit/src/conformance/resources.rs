//! The resources that the suites read by URI.

use serde_json::{Value, json};

use super::PNG;
use super::wire::RpcError;

pub(super) fn list() -> Vec<Value> {
    let resource = |uri: &str, name: &str, kind: &str| json!({ "uri": uri, "name": name, "description": format!("{name}, for testing"), "mimeType": kind });
    vec![
        resource("test://static-text", "Static text", "text/plain"),
        resource("test://static-binary", "Static binary", "image/png"),
        resource("test://watched-resource", "Watched", "text/plain"),
    ]
}

pub(super) fn templates() -> Vec<Value> {
    vec![json!({
        "uriTemplate": "test://template/{id}/data",
        "name": "Template",
        "description": "Data by id, for testing",
        "mimeType": "application/json",
    })]
}

pub(super) fn read(params: &Value) -> Result<Value, RpcError> {
    let uri = params["uri"].as_str().unwrap_or_default();
    let content = match uri {
        "test://static-text" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "The content of the static text resource." })
        }
        "test://static-binary" => json!({ "uri": uri, "mimeType": "image/png", "blob": PNG }),
        "test://watched-resource" => {
            json!({ "uri": uri, "mimeType": "text/plain", "text": "Watched content" })
        }
        _ => match template_id(uri) {
            Some(id) => {
                let text = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") })
                    .to_string();
                json!({ "uri": uri, "mimeType": "application/json", "text": text })
            }
            // SEP-2164: invalid params, with the URI that was asked for.
            None => return Err((-32602, format!("resource not found: {uri}"), json!({ "uri": uri }))),
        },
    };
    Ok(json!({ "contents": [content] }))
}

fn template_id(uri: &str) -> Option<&str> {
    let id = uri.strip_prefix("test://template/")?.strip_suffix("/data")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_filled_and_anything_else_is_not_found() {
        let read = |uri: &str| read(&json!({ "uri": uri }));
        let text = read("test://template/123/data").expect("filled")["contents"][0]["text"].clone();
        assert!(text.as_str().expect("text").contains("123"));
        for uri in ["test://template//data", "test://template/1/2/data", "test://nothing", ""] {
            assert_eq!(read(uri).expect_err(uri).0, -32602);
        }
    }
}
