//! The leaks that were seen in the field, each re-enacted through `moored run`. Each has a number, S01 to S42, and the tests
//! are the list of them: what S25 is stands in the names of the tests that begin with `s25_`. Each is played by every client that
//! it can happen to, as root and as a plain user.
//!
//! - `client_goes`: the client goes away (S01 to S11);
//! - `killings`: SIGKILL of each of moored's own processes, and of two at once (S10);
//! - `random_times`: the same at any time of a session;
//! - `descendants`: what a server starts, and tries to leave behind (S25 to S30);
//! - `identity`: supervisors that die, probes, nested hosts, locks, numbers that are used again, machines that sleep (S11, S21,
//!   S22, S37, S39, S40);
//! - `machine`: memory runs out, the wall clock is set (S40, S41);
//! - `abandoned`: the client lives and has forgotten its server (S13 to S20, S24, S38, S41, S42);
//! - `policy`: the rules that help against that, each held to its word (S13 to S20, S24, S38, S41, S42);
//! - `codex`: a client that is a program of its own;
//! - `seen`: what `abandoned` and `policy` share.

#![expect(clippy::disallowed_methods, reason = "clients under a mark, which ends what is left of them")]

mod abandoned;
mod client_goes;
mod codex;
#[allow(dead_code, reason = "each target uses its part of it")]
#[path = "../common/mod.rs"]
mod common;
mod descendants;
mod identity;
mod killings;
mod machine;
mod policy;
mod random_times;
mod seen;
