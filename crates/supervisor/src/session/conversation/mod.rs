//! What client and server say to each other, as far as a session takes part in it. Pure: no file, no clock, no queue.
//!
//! [`Conversation`] is shown every message of both sides, and told when a server starts and when it is gone. It answers with
//! [`Effects`]: what goes to the server, what goes to the client and which call that answers, and what the session has to do.
//! It owns what is in flight, what waits for a server, what a server that was started again is told, and the errors that are
//! answered in a server's stead. The MCP exchanges themselves are in `crate::mcp`; when a server runs is decided by `life`;
//! bytes are moved by the session's task.

mod effects;
mod from_client;
mod from_server;
mod pending;
mod talking;

pub use effects::{Author, ToClient};
pub(crate) use effects::{Effects, FollowUps};
pub(in crate::session) use talking::{Conversation, ConversationRules, Failed};
