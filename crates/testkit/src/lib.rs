//! What the tests of moored share: servers that misbehave, and the means to see from outside what became of them.
//!
//! This crate must not share a mechanism with the code under test: moored finds its own by `RLIMIT_LOCKS`, cgroups
//! and parentage, so the testkit marks by `RLIMIT_RSS` and reads `/proc` with its own few lines.
//!
//! - [`survivors`]: who is still alive of all that a test ever started, and the guard that ends them.
//! - [`bins`]: where the test programs lie, built and copied so that any user can run them.
//! - [`as_user`]: root and a plain user, and folders that belong to them.
//! - [`wait`]: conditions with deadlines instead of sleeps.
//! - [`left_out()`]: what could not be played on this machine.
//! - [`pairwise`]: few combinations that cover every pair of levels.
//! - [`dice`]: random choices that can be made again.
//! - [`stroke`]: several processes killed as one stroke.
//! - [`innocents`]: bystanders that can prove that nobody signalled them.
//! - [`client`], [`conformance`], [`killer`], [`marked`] and [`server`]: the insides of the bins `client`, `conformance`, `killer`,
//!   `marked` and `misbehave`.

#![cfg(target_os = "linux")]

pub mod as_user;
pub mod bins;
pub mod client;
pub mod conformance;
pub mod dice;
pub mod innocents;
pub mod killer;
pub mod left_out;
pub mod marked;
pub mod pairwise;
mod proc;
pub mod server;
pub mod stroke;
pub mod survivors;
pub mod wait;

pub use as_user::{Scratch, User};
pub use bins::{bin, example};
pub use dice::Dice;
pub use innocents::Bystander;
pub use left_out::{lacking, left_out};
pub use stroke::{Target, kill_at_once};
pub use survivors::{Mark, MarkGuard, Survivor, Wrap};
pub use wait::{in_time, read_pids, wait_until};
