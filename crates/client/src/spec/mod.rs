//! What to run, as a value that can be compared: `server_spec` is what the host fills in, `restart` when it is started
//! again, `command` turns it into what containment starts.

mod command;
mod restart;
mod server_spec;

pub use command::Stderr;
pub use restart::Restart;
pub use server_spec::{ServerSpec, Start};
