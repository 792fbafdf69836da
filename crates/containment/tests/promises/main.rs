//! The promise on real processes: however a server hides its descendants and however the session ends, nobody is left.
//!
//! An owner program (`examples/promise_host.rs`) starts a misbehaving server (`testkit`'s `misbehave`), one of the two
//! or the test itself brings an ending about, and the testkit's mark tells from outside who is still alive: the owner and
//! the guardians carry it too, so an empty mark means that nothing at all is left.
//!
//! - `setting`, `escapes`, `endings`: the three tables that the matrix is the product of;
//! - `stage`: one owner with its server, in a folder and under a mark of its own;
//! - `cgroups`: a group of the kernel's that is delegated to the plain user;
//! - `cell`: one escape in one ending in one setting, and everything that must be true afterwards;
//! - `matrix`: all cells, or with `MOORED_TEST_FULL` unset a pairwise cover of them; a test per setting;
//! - `bounds`: the bounds of the default ladder, whoever is killed on the way;
//! - `claims`: what each layer can do alone, compared with the table in the crate's documentation.

#![expect(
    clippy::disallowed_methods,
    reason = "the owner is no server, and whatever it leaves is found by the mark"
)]
#![expect(clippy::print_stderr, reason = "tallies, and what was left out, are for whoever runs the tests")]

mod bounds;
mod cell;
mod cgroups;
mod claims;
mod endings;
mod escapes;
mod matrix;
mod setting;
mod stage;
