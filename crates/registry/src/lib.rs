//! Where a session is found while it lives. No SQL, no MCP: sessions of every kind register here.

pub mod boot_time;
pub mod control;
mod control_server;
mod crash_memory;
mod held_process;
mod limit;
mod private_files;
mod registered_run;
mod registration;
mod run_id;
mod run_info;
mod superseding;

/// Times for people, as a registration and a [`Status`](control::Status) have them.
pub use jiff::Timestamp;

pub use control_server::{ControlRequest, ControlServer};
pub use crash_memory::{CrashLoop, CrashMemory};
pub use held_process::hold;
pub use limit::{NoRoom, make_room, make_room_for_wake};
pub use private_files::{NOFOLLOW_NONBLOCK, open_regular_file, private_file};
pub use registered_run::{RegisteredRun, remove_dead};
pub use registration::RunRegistration;
pub use run_id::{ParseRunIdError, RunId};
pub use run_info::{Client, Origin, RunInfo};
pub use superseding::{APART, Superseded};
