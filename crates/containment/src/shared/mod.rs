//! What the library and the guardian mean alike: compiled into both, so it has no std, no heap and no reader of files.
//!
//! - `ladder`: close stdin → TERM → KILL → verify, pure;
//! - `board`: the layout of the memory that owner and guardians share;
//! - `keep_rule`: whether a process runs a kept program, pure;
//! - `interpreters`: programs that run the file which their arguments name;
//! - `stat`: one line of `/proc/PID/stat`, parsed.

pub(crate) mod board;
pub(crate) mod interpreters;
pub(crate) mod keep_rule;
pub(crate) mod ladder;
pub(crate) mod stat;
