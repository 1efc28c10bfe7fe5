//! The description in TypeScript: with the types that `openapi-typescript` makes of it, a program
//! with `openapi-fetch` compiles and runs the demo.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use test_support::languages::node_modules;

use super::{FOLDER, succeed, write_description};
use crate::process::binary::Home;
use crate::process::service::Service;

/// The declarations of libraries are taken as they are; checking those of the browser takes most of
/// the time.
const OPTIONS: [&str; 9] = [
    "--strict",
    "--skipLibCheck",
    "--target",
    "es2022",
    "--lib",
    "es2023,dom,dom.iterable,dom.asynciterable",
    "--module",
    "nodenext",
    "--noEmitOnError",
];

#[tokio::test]
async fn a_client_with_types_made_of_the_description_runs_the_demo() {
    let Some(modules) = node_modules() else { return };
    let home = Home::with_file();
    let service = Service::start(&home).await;
    let document = write_description(&home, &service).await;
    symlink(&modules, home.path().join("node_modules")).unwrap();
    home.write("package.json", r#"{"type": "module"}"#);
    home.write("demo.ts", &fs::read_to_string(format!("{FOLDER}/demo.ts")).unwrap());
    let node = |program: &str| {
        let mut command = Command::new("node");
        command.arg(program).current_dir(home.path());
        command
    };
    let types = ["--output", "schema.ts"];
    succeed(
        node("node_modules/openapi-typescript/bin/cli.js")
            .arg(&document)
            .args(types),
    );
    succeed(node("node_modules/typescript/bin/tsc").args(OPTIONS).arg("demo.ts"));
    let answer = succeed(node("demo.js").arg(format!("http://{}", service.address)));
    assert!(answer.contains("17 * 23 = 391"), "{answer}");
}
