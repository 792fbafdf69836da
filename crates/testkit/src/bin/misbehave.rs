//! An MCP server with every bad habit seen in the wild, each behind a switch. `moored_testkit::server` lists them.

use std::process::ExitCode;

fn main() -> ExitCode {
    moored_testkit::server::main()
}
