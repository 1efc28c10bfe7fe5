//! The binary: parses the command line and runs the command.

use std::process::ExitCode;

use agent_runtime::cli;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
