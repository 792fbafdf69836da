//! moored: argv becomes one call. The only room that prints and exits.

mod args;
mod commands;
mod exit;
mod logging;
mod own_program;
mod render;
mod settings;

use std::process::ExitCode;

fn main() -> ExitCode {
    let typed = || commands::run_typed(std::env::args_os()).unwrap_or_else(|failure| exit::tell(&failure));
    // A panic has been told by then, and is a failure of ours: no server's code looks like it.
    std::panic::catch_unwind(typed).unwrap_or(exit::Exit::RUN_FAILED).into()
}
