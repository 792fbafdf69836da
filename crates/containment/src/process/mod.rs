//! What is known of processes: who one is, and which there are.
//!
//! - `identity`: a process that cannot be mistaken for a later one, and holding it;
//! - `table`: one snapshot of all processes.

pub(crate) mod identity;
pub(crate) mod table;

pub use identity::{BootId, ParseIdentityError, ProcessIdentity};
pub use table::{Process, ProcessTable};
