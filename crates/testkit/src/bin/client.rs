//! An MCP client that can be killed, told to forget its servers, or to close them. `moored_testkit::client` has the usage.

use std::process::ExitCode;

fn main() -> ExitCode {
    moored_testkit::client::main()
}
