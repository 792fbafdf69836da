//! `moored run -- CMD` is CMD, to whoever looks at its stdio: the same bytes, the same environment, the same end.
//!
//! - `servers`: real servers, asked the same with and without moored;
//! - `surroundings`: argv, environment, working directory, exit codes;
//! - `bad_input`: what a client or a server should never write, and does;
//! - `bad_places`: folders for state and records that cannot be used, or hold what they should not;
//! - `shortages`: too few processes, files that may not grow, a stderr that nobody reads.

#![expect(clippy::disallowed_methods, reason = "servers under a mark, which ends what is left of them")]

mod bad_input;
mod bad_places;
#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod servers;
mod shortages;
mod surroundings;
