//! The testkit keeps its word: every switch does what it says, on real processes, and survivors sees through all.

#![expect(
    clippy::disallowed_methods,
    reason = "the testkit is under test here, and its guard ends what is started"
)]

mod bins;
mod ends;
mod escapes;
mod harness;
mod innocents;
mod killed;
mod stroke;
mod survivors;
