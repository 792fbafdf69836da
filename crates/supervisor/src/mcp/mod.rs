//! The MCP methods that a session itself takes part in. All of it is pure: lines in, lines out.
//!
//! - `protocol_state`: which requests are in flight, and which are sent again after a wake. `tasks` and `listens` are the two
//!   kinds of state that a server keeps for longer than a call.
//! - `replay`: sends them to a server that was started again, and compares its answers.
//! - `info_tool`: the tool `get_server_info`.
//! - `answer`: errors in the server's stead.
//!
//! Which of them applies when is decided by `session::conversation`.

mod answer;
pub(crate) mod info_tool;
mod listens;
mod protocol_state;
mod replay;
mod tasks;

pub(crate) use answer::{Failure, error_line};
pub(crate) use protocol_state::{ProtocolState, ServerSaid, ids_in_batch};
pub(crate) use replay::{Replay, Step};
