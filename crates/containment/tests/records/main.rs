//! What is written down of a session, what is done when it has ended, and what a sweep does about the dead.
//!
//! - `written`: the record's life, beside the session's;
//! - `on_end`: the command that is run when the tree is gone;
//! - `swept`: sessions all of whose keepers were killed at once;
//! - `foreign`: what lies in the folder of records and is not to be acted on;
//! - `nested`: sessions inside sessions.

#![expect(clippy::disallowed_methods, reason = "hosts under a mark, which ends what is left of them")]

#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod foreign;
mod nested;
mod on_end;
mod swept;
mod written;
