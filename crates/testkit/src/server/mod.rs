//! The bin `misbehave`: a stdio MCP server with every bad habit seen in the wild, each behind a switch.
//!
//! ```text
//! switches ──▶ pid file ──▶ escapes start ──▶ all are up ──▶ ready file ──▶ sudden ends ──▶ MCP until EOF ──▶ habits at EOF
//! ```
//!
//! What it starts is this same bin again with a hidden first argument, since a fork without exec needs unsafe code:
//! `__sleep` (a process that stays), `__detach` (the middle of a double fork), `__hop` (one generation of a storm) and
//! `__bystander` (see [`crate::innocents`]).
//!
//! - `switches`: the switches and what they mean.
//! - `escapes`: everything the server starts, and the wait until it is up.
//! - `helper`, `hop`, `bystander`: the insides of what it starts.
//! - `life`: the order above, and the ends.
//! - `mcp`: the few methods it answers.
//!
//! Without switches it is a well-behaved server: it answers, and exits 0 at EOF.

#![expect(
    clippy::disallowed_methods,
    reason = "these programs exist to leak; the survivors' mark finds what they start"
)]

mod bystander;
mod escapes;
mod helper;
mod hop;
mod life;
mod mcp;
mod signals;
mod switches;
mod uplog;

pub(crate) use bystander::NAME as BYSTANDER;

use std::ffi::OsString;
use std::process::ExitCode;

/// The whole bin: looks at the first argument, and becomes a server or one of its helpers.
pub fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    let first = args.peek().and_then(|arg| arg.to_str()).unwrap_or_default();
    // The hop comes first: a storm is only as fast as the road from exec to the next spawn.
    match first {
        hop::NAME => hop::main(args.skip(1)),
        helper::SLEEP => helper::sleep(args.skip(1)),
        helper::DETACH => helper::detach(args.skip(1)),
        bystander::NAME => bystander::main(),
        _ => life::main(args.collect::<Vec<OsString>>()),
    }
}
