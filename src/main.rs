//! The binary: parses the command line and runs the command.

fn main() {}
