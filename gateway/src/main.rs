//! The `tidegate` program.

use std::process::ExitCode;

fn main() -> ExitCode {
    tidegate_gateway::program::main()
}
