//! Bytes both ways: our own stdio of whatever kind, lines and their bounds, the envelope of a message, and what waits to
//! be written. Knows no process and no MCP method.
//!
//! A message is held until it is whole, so that one that is too long can be answered instead of passed on. Whatever does
//! not begin like a message passes at once, untouched.

mod id;
mod port;
mod queue;
mod scan;
mod split;
mod watch;
mod width;

pub(crate) use id::id_key;
pub(crate) use port::{Inlet, Outlet};
pub(crate) use queue::Queue;
pub(crate) use scan::Envelope;
pub(crate) use split::{Bytes, Piece, Splitter};
pub(crate) use watch::watch;
pub(crate) use width::Width;
