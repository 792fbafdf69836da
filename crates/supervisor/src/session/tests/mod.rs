//! Whole sessions in one process: a test port on one side, a scripted server on the other, and time that is paused unless
//! threads take part. What real processes do is tested in the `moored` crate.

mod cast;
mod exactly_once;
mod many;
mod script;
mod stories;
