//! Bytes both ways. Knows no process and no MCP method.
//!
//! - `stdio`: our own stdin, stdout and stderr, never made non-blocking for others; `watch` registers an fd with tokio.
//! - `split`: bytes into messages. A message is kept until it is whole, so that one that is too long can be answered instead of
//!   passed on. Bytes that do not begin like a message pass at once, untouched.
//! - `scan`: the envelope of a message (`id`, `method`, kind); `id`: when two ids are the same one.
//! - `queue`: bytes that wait to be written; `width`: the size of the pipe that they wait for.

mod id;
mod queue;
mod scan;
mod split;
mod stdio;
mod watch;
mod width;

pub use id::id_key;
pub(crate) use queue::Queue;
pub use scan::Envelope;
pub(crate) use split::Splitter;
pub use split::{Bytes, Piece};
pub(crate) use stdio::{StdioReader, StdioWriter};
pub(crate) use watch::watch;
pub(crate) use width::Width;
