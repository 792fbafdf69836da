//! The set: the one value that owns every process, and all that happens to servers as a group.
//!
//! - `server_set`: what the host calls: connect, replace, restart, shut down, drop.
//! - `plan`: pure: which servers of a new list are kept, started and ended.
//! - `generations`: starts a plan's servers and lets them take over from the ones before.
//! - `member`: one server as its set sees it: its slot and its task, waited for with a bound.
//! - `replaced`: what became of a generation, as the host is told.
//! - `options`: how a set treats its servers; the limit that several sets may share.
//! - `held_processes`: every process of the set, of all generations; a start and the close exclude each other.
//! - `shared`: what all tasks of a set share.
//!
//! What a single server does between its start and its end is in [`crate::server`].

mod generations;
mod held_processes;
mod member;
mod options;
mod plan;
mod replaced;
mod server_set;
mod shared;

pub use options::{Replacing, ServerLimit, SetOptions};
pub use plan::DuplicateName;
pub use replaced::{EndedServer, FailedServer, ReplaceError, Replaced};
pub use server_set::ServerSet;
pub(crate) use shared::Shared;
