//! moored: argv becomes one call. The only room that prints and exits.

mod args;
mod commands;
mod exit;
mod own_program;
mod render;
mod settings;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run_typed(std::env::args_os()).unwrap_or_else(|failure| exit::tell(&failure)).into()
}
