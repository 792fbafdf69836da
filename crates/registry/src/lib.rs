//! Where a session is found while it lives. No SQL, no MCP: sessions of every kind register here.

pub mod berth;
pub mod boot_time;
pub mod control;
pub mod crashes;
pub mod door;
pub mod held_process;
pub mod limit;
pub mod private_files;
pub mod run_id;
pub mod superseding;
