//! The description in Python: `openapi-spec-validator` accepts it, and the client that
//! `openapi-python-client` makes of it runs the demo.

use std::process::Command;

use test_support::languages::python;

use super::{FOLDER, succeed, write_description};
use crate::process::binary::Home;
use crate::process::service::Service;

#[tokio::test]
async fn the_description_is_valid_and_a_client_made_of_it_runs_the_demo() {
    let Some(python) = python() else { return };
    let home = Home::with_file();
    let service = Service::start(&home).await;
    let document = write_description(&home, &service).await;
    let module = |name: &str| {
        let mut command = Command::new(&python);
        command.args(["-m", name]).current_dir(home.path());
        command
    };
    let verdict = succeed(module("openapi_spec_validator").arg(&document));
    assert!(verdict.trim_end().ends_with("openapi.json: OK"), "{verdict}");

    home.write("generator.yml", "post_hooks: []\n");
    let made = succeed(
        module("openapi_python_client")
            .args(["generate", "--meta", "none", "--config", "generator.yml"])
            .args(["--output-path", "agent_runtime_client", "--path"])
            .arg(&document),
    );
    // It leaves out what it does not understand, and prints that. It knows no archives.
    let warnings: Vec<_> = made.lines().filter(|line| line.starts_with("WARNING")).collect();
    assert_eq!(
        warnings,
        ["WARNING parsing GET /v1/sessions/{session_id}/archive within files."],
        "{made}"
    );

    let address = format!("http://{}", service.address);
    let demo = format!("{FOLDER}/demo.py");
    let answer = succeed(
        Command::new(&python)
            .args([&demo, &address])
            .env("PYTHONPATH", home.path()),
    );
    assert!(answer.contains("17 * 23 = 391"), "{answer}");
}
