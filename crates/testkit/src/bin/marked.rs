//! Runs a program with a mark that its descendants cannot remove. `moored_testkit::marked` has the usage.

use std::process::ExitCode;

fn main() -> ExitCode {
    moored_testkit::marked::main()
}
