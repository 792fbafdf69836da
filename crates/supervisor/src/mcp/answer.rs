//! Errors that we answer in the server's stead, for one call each.

use serde_json::json;

/// Why we answer a call with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The server is gone.
    ServerEnded,
    /// It could not be started, or not again.
    NotStarted,
    /// The message is longer than we pass on.
    TooLong,
}

impl Failure {
    /// JSON-RPC leaves −32000 to −32099 to implementations; MCP uses some from −32002 down and −32020 up.
    fn code(self) -> i32 {
        match self {
            Self::ServerEnded => -32_090,
            Self::NotStarted => -32_091,
            Self::TooLong => -32_092,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::ServerEnded => "server-ended",
            Self::NotStarted => "server-not-started",
            Self::TooLong => "message-too-long",
        }
    }
}

/// A whole line that answers the call with that id, which stands as it was written.
pub(crate) fn error_line(id: &[u8], failure: Failure, message: &str) -> Vec<u8> {
    let error = json!({"code": failure.code(), "message": message, "data": {"moored": failure.name()}});
    let mut line = br#"{"jsonrpc":"2.0","id":"#.to_vec();
    line.extend_from_slice(id);
    line.extend_from_slice(format!(",\"error\":{error}}}\n").as_bytes());
    line
}
