//! What is known of processes, read from `/proc` in this one place.
//!
//! - `identity`: [`ProcessIdentity`], a process that cannot be mistaken for a later one of the same number;
//! - `held`: [`HeldProcess`], one that is held by pidfd, so that what is done to it is done to no other;
//! - `table`: [`Process`], a row of [`ProcessTable`], one snapshot of all of them;
//! - `facts`: command line, short name, ancestors, locks, interpreters;
//! - `holders`: which processes hold an end of a pipe;
//! - [`boot_time`]: the clock that start ticks count on.
//!
//! Whom to signal is not decided here. `/proc` as the guardian reads it, without a heap, is in `guardian/proc.rs`; the line that
//! both parse is `shared/stat.rs`.

pub mod boot_time;
mod facts;
mod held;
mod holders;
pub(crate) mod identity;
mod table;

pub use facts::{ancestors, command_line, is_interpreter, is_shell, lockers, short_name};
pub use held::{HeldProcess, resume_if_stopped};
pub use holders::{PipeEnd, files_are_denied, holders_of_pipe, holds_pipe};
pub use identity::{BootId, ParseIdentityError, ProcessIdentity};
pub use table::{Process, ProcessTable};
