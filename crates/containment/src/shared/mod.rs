//! What the library and the guardian mean alike: compiled into both, so it has no std, no heap and no reader of files.
//!
//! - `ladder`: close stdin → TERM → KILL → verify, pure;
//! - `board`: the layout of the memory that owner and guardians share;
//! - `keep_rule`: whether a process runs a kept program, pure;
//! - `stat`: one line of `/proc/PID/stat`, parsed.

pub(crate) mod board;
pub(crate) mod keep_rule;
pub(crate) mod ladder;
pub(crate) mod stat;
