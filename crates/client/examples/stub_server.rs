//! The server in the tests of this crate: quick to start, and able to keep a call in flight for as long as it is told.
//!
//! `stub_server [--pid-file FILE]` appends its pid to the file, and answers until the end of its input. Its tool `wait`
//! answers after the milliseconds in `{"ms":…}`, without holding up other calls; `hang` never answers; `pid` tells its pid;
//! `notify` says that the list of tools has changed.

use std::fs::File;
use std::io::{self, BufRead as _, Write as _};
use std::time::Duration;

use serde_json::{Value, json};

fn main() -> io::Result<()> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    if let [option, path] = &args[..]
        && option == "--pid-file"
    {
        let mut file = File::options().append(true).create(true).open(path)?;
        // One write, so that servers which start at once do not mix.
        file.write_all(format!("{}\n", std::process::id()).as_bytes())?;
    }
    for line in io::stdin().lock().lines() {
        let Ok(message) = serde_json::from_str::<Value>(&line?) else { continue };
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else { continue };
        answer(method, id.clone(), &message["params"]);
    }
    Ok(())
}

fn answer(method: &str, id: Value, params: &Value) {
    match (method, params["name"].as_str()) {
        ("initialize", _) => say(
            &id,
            &json!({
                "protocolVersion": params["protocolVersion"],
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "stub", "version": "1" },
            }),
        ),
        ("tools/list", _) => {
            let tool = |name| json!({ "name": name, "inputSchema": { "type": "object" } });
            say(&id, &json!({ "tools": [tool("pid"), tool("wait"), tool("hang")] }));
        }
        ("tools/call", Some("pid")) => say_text(&id, &std::process::id().to_string()),
        ("tools/call", Some("wait")) => {
            let pause = Duration::from_millis(params["arguments"]["ms"].as_u64().unwrap_or(0));
            std::thread::spawn(move || {
                std::thread::sleep(pause);
                say_text(&id, "waited");
            });
        }
        ("tools/call", Some("notify")) => {
            write(&json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" }));
            say_text(&id, "notified");
        }
        ("tools/call", _) => {}
        _ => say(&id, &json!({})),
    }
}

fn say_text(id: &Value, text: &str) {
    say(id, &json!({ "content": [{ "type": "text", "text": text }], "isError": false }));
}

fn say(id: &Value, result: &Value) {
    write(&json!({ "jsonrpc": "2.0", "id": id, "result": result }));
}

/// A client that is gone is as good as the end of input, which comes next.
fn write(message: &Value) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(format!("{message}\n").as_bytes()).and_then(|()| stdout.flush());
}
