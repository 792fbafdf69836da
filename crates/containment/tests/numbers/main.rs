//! Many processes, many sessions, many deaths: the promise holds by the hundred, and nothing piles up in the host.
//!
//! - `trees`: one session with very many processes;
//! - `sessions`: one host with very many sessions;
//! - `guardians`: guardians killed under load, one of them and both.
//!
//! Each of them has the machine to itself.

#![expect(clippy::disallowed_methods, reason = "hosts under a mark, which ends what is left of them")]

#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod guardians;
mod sessions;
mod trees;
