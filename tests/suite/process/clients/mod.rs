//! The description of the interface as others read it: a validator, makers of clients and a fuzzer,
//! against the binary.

mod conformance;
mod fuzzing;
mod mcp;
mod python;
mod typescript;

use std::path::PathBuf;
use std::process::Command;

use super::binary::Home;
use super::service::Service;

/// Where the programs of these tests are.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/process/clients");

/// Writes the description that a service gives into its folder.
async fn write_description(home: &Home, service: &Service) -> PathBuf {
    home.write("openapi.json", &service.get("/openapi.json").await.to_string());
    home.path().join("openapi.json")
}

/// Runs a command, which must succeed, and returns what it printed.
pub(super) fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    assert!(output.status.success(), "{command:?}\n{printed}");
    printed
}
