//! The guardian's whole runtime: the kernel, and nothing else.
//!
//! The guardian program (`src/guardian/`) is built without std and without libc, so that two of them cost a session
//! some tens of kilobytes. This module gives it what it needs of the kernel as *safe* functions; all `unsafe` of the
//! guardian is here. It is compiled into the guardian only (see `build.rs`), never into the library.
//!
//! - `arch`: how a system call is made, the numbers, and the first instruction, one file per architecture;
//! - `start`: from the first instruction to `crate::main`, and what a panic does;
//! - `mem`: the memory functions that the compiler takes for granted;
//! - `call`: the system calls, with slices and `Result` in place of pointers and minus signs;
//! - `fork`: the calls that make a process or become another program;
//! - `map`: memory from the kernel: the board shared with the owner, and scratch space for a teardown.

#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod arch;
pub(crate) mod call;
pub(crate) mod fork;
pub(crate) mod map;
mod mem;
mod start;

pub(crate) use start::Args;
