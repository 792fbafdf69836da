//! A session's whole life: starting a server contained, relaying it, putting it to sleep, ending it, and writing
//! it down. Knows no HTTP and prints nothing. What to run is said in `moored_launch`; the view from outside is
//! `moored_operator`; where a session is found while it lives is `moored_registry`.
//!
//! | room | owns |
//! |---|---|
//! | [`event`] | the one vocabulary of what happened; ledger, log and `events` only listen |
//! | [`session`] | the life of one `run`: deciding (`state`) and doing (`driver`) |
//! | `relay` | bytes both ways: framing, limits, back-pressure, envelopes; no MCP method |
//! | `mcp` | the few MCP exchanges that a session takes part in: replay after a wake, the info tool |
//! | [`ledger`] | history; losing it loses no safety |
//! | [`log`] | each server's stderr: kept, rotated, followed |
//! | [`places`] | where history and logs are kept |
//! | [`records`] | history, log and folders of one session, put together |

mod background;
pub mod event;
mod ignored;
pub mod ledger;
pub mod log;
mod mcp;
mod on_thread;
pub mod places;
pub mod records;
mod relay;
pub mod session;
