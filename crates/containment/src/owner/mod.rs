//! The owner's side of a session: what a program that starts a server holds in its hands.
//!
//! - `command`: the one way in: what to run and how to hold it;
//! - `start`, `texts`, `start_error`: from a command to a running session, or to an error with nothing left behind;
//! - `contained`, [`aio`]: the blocking handle, and the same awaited; `link` is what both are made of;
//! - `report`, `strength`: what an ending was, and which layers hold;
//! - `stdio`, `signaller`, `signals`: the server's files, signals to it, and signals to us.
//!
//! What the guardians do is in `guardian/`; what they share with this room is in `shared/`.

#[cfg(feature = "tokio")]
pub mod aio;
pub(crate) mod command;
pub(crate) mod contained;
pub(crate) mod link;
pub(crate) mod report;
pub(crate) mod signaller;
pub(crate) mod signals;
pub(crate) mod start;
pub(crate) mod start_error;
pub(crate) mod stdio;
pub(crate) mod strength;
pub(crate) mod texts;
