//! Servers that fight their guardians, and what is promised all the same.
//!
//! - `blinded`: that take files or `/proc` from their guardians;
//! - `every_call`: that escape while one or two of ours are killed, at each of their system calls;
//! - `forged`: that look into their guardians, or speak in their name;
//! - `kinds`, `escapes.pl`, `matrix`: that leave something behind, in every way and ending;
//! - `kept`: that pretend to be what is kept, or storm beside it;
//! - `leaves`: that leave more of a cgroup behind than its leaf;
//! - `locked`: that play dead or alive for a sweep;
//! - `traced`: that hold a guardian, or are held themselves, by a debugger.

#![expect(clippy::disallowed_methods, reason = "hosts under a mark, which ends what is left of them")]

mod blinded;
#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod every_call;
mod forged;
mod kept;
mod kinds;
mod leaves;
mod locked;
mod matrix;
mod traced;
