//! Runs a session and kills one of its processes at a chosen system call. `moored_testkit::killer` has the usage.

use std::process::ExitCode;

fn main() -> ExitCode {
    moored_testkit::killer::main()
}
