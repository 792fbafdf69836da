//! What to run and how to treat it, as values that can be compared: for `moored run`, which relays a server, and for
//! `moored-client`, which speaks to one. Pure: no clock, no file, no process, no SQL. Starting is containment's, and the
//! life of what was started is the supervisor's and the client's.
//!
//! | file | owns |
//! |---|---|
//! | `launch` | the launch description, and how it becomes what containment starts |
//! | `environment` | a server's variables: ours with changes, or its own |
//! | `spec` | one server of `moored run`: what to launch, and its rules |
//! | `rules` | when it sleeps, how many there may be, what follows a crash |
//! | `name` | what a server is called when the command line does not say |
//! | `mask` | a command without its secrets |
//! | `back_off` | how long to wait before a server that failed is started again, and when it has failed too often |
//! | `key`, `stable_hash` | numbers for values that are the same in every build |
#![deny(rustdoc::broken_intra_doc_links)]

mod back_off;
mod environment;
mod key;
mod launch;
mod mask;
mod name;
mod rules;
mod spec;
mod stable_hash;

pub use back_off::{AfterCrash, BackOff, CrashLimit};
pub use environment::{Environment, ProcessEnv};
pub use key::Key;
pub use launch::{Launch, LaunchStdio, StdioSource};
pub use mask::{masked, masked_text};
pub use name::server_name;
pub use rules::{Idle, OverLimit, Restart, Rules};
pub use spec::ServerSpec;
pub use stable_hash::stable_hash;
