//! The life of one session: a client on one side, a server that may sleep, wake and crash on the other.
//!
//! ```text
//!   client ◀──▶ ClientPort ◀──▶ Session: the one task ◀──▶ RunningServer ◀──▶ server
//!                                 │ asks and obeys
//!                                 ├─ ServerLife    pure: what a session does about what happens to it
//!                                 ├─ Conversation  pure: what is in flight, replay, errors in the server's stead
//!                                 └─ IdleFacts     pure: when a server may sleep
//! ```
//!
//! | file | owns |
//! |---|---|
//! | `life` | the state diagram and its machine |
//! | `conversation` | what the two say to each other, as far as a session takes part in it |
//! | `port` | the client's side, as a trait: stdio in `run`, HTTP in a gateway, a test |
//! | `server` | the server's side, as traits; `contained` is the real one |
//! | `pump` | moves the bytes between the two, with back-pressure |
//! | `task` | owns all of these and does what they say |
//! | `idle` | when a server may be put to sleep |
//! | `jobs` | what may block, on threads |
//! | `reporter`, `host` | events, and what a session finds around it |
//! | `door` | the way in for hosts of many sessions, such as a gateway |
//! | `run` | the shell of `moored run`: our own stdio, signals, job control |
//! | `pid_file`, `code`, `info` | the PID file, the program on disk, the answer to `get_server_info` |

mod code;
mod contained;
mod conversation;
mod door;
mod host;
mod idle;
mod info;
mod jobs;
mod life;
mod outcome;
mod pid_file;
mod port;
mod pump;
mod reporter;
mod run;
mod server;
mod task;
#[cfg(test)]
mod tests;

pub use conversation::{Author, ToClient};
pub use door::{SessionHandle, SessionPeer, open};
pub use host::{EventSink, Housekeeping, LogSink, SessionHost};
pub use moored_registry::NoRoom;
pub use outcome::{RunError, RunOutcome};
pub use pid_file::remove_if_dead as remove_dead_pid_file;
pub use port::{ClientPort, EofKind, Flushed, Received};
pub use run::run;

pub use crate::relay::{Bytes as LineBytes, Envelope, Piece, id_key};
