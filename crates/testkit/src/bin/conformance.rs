//! A stdio MCP server with everything that the protocol's conformance suites ask a server for. `moored_testkit::conformance`
//! lists it.

use std::process::ExitCode;

fn main() -> ExitCode {
    moored_testkit::conformance::main()
}
