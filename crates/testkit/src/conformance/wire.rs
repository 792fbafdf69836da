//! The server's side of the pipe: whole lines to stdout from any thread, and requests to the client with their answers.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long a client may take to answer a request of ours.
const CLIENT_REPLY_TIMEOUT: Duration = Duration::from_secs(10);

/// A JSON-RPC error: code, message, data.
pub(super) type RpcError = (i64, String, Value);

/// Shared by all threads.
#[derive(Debug, Default)]
pub(super) struct Wire {
    next_id: AtomicU64,
    waiting: Mutex<HashMap<u64, Sender<Value>>>,
}

impl Wire {
    /// Answers a request of the client.
    pub(super) fn answer(&self, id: &Value, result: Result<Value, RpcError>) {
        self.write(&match result {
            Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
            Err((code, message, data)) => {
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message, "data": data } })
            }
        });
    }

    /// Sends a notification.
    pub(super) fn notify(&self, method: &str, params: Value) {
        self.write(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Asks the client, and waits for its answer; the error is the client's, or that it did not answer in time.
    pub(super) fn ask(&self, method: &str, params: Value) -> Result<Value, String> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (tell, answer) = channel();
        self.waiting.lock().expect("no thread panics with it").insert(id, tell);
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let message = answer.recv_timeout(CLIENT_REPLY_TIMEOUT).map_err(|_| "no answer".to_owned())?;
        match message.get("result") {
            Some(result) => Ok(result.clone()),
            None => Err(message["error"]["message"].as_str().unwrap_or("no reason given").to_owned()),
        }
    }

    /// Hands an answer of the client to the thread that asked.
    pub(super) fn answered(&self, message: Value) {
        let Some(id) = message["id"].as_u64() else { return };
        if let Some(tell) = self.waiting.lock().expect("no thread panics with it").remove(&id) {
            // The thread may have given up.
            let _ = tell.send(message);
        }
    }

    fn write(&self, message: &Value) {
        let mut stdout = io::stdout().lock();
        // A client that is gone shows at stdin.
        let _ = stdout.write_all(format!("{message}\n").as_bytes()).and_then(|()| stdout.flush());
    }
}
