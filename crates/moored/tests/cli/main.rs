//! The binary as it is typed: help, usage, exit codes, settings, and the operator's verbs on real servers. The promises
//! of `run` itself are the scenarios'.
#![expect(clippy::disallowed_methods, reason = "a test starts the program under test in the plain way")]

mod demo;
mod home;
mod operator;
mod settings;
mod squatted;
mod usage;
