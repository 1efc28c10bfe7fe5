//! The service against its description: `schemathesis` makes requests that fit it and others that
//! don't, and checks every response.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use test_support::languages::python;

use super::{FOLDER, succeed, write_description};
use crate::process::binary::Home;
use crate::process::service::Service;

#[tokio::test]
async fn schemathesis_finds_no_response_that_the_description_lacks() {
    let Some(python) = python() else { return };
    let home = Home::with_file();
    let scopes = ["runs:write", "sessions:read", "admin", "metrics", "audit"].map(|scope| ["--scope", scope]);
    let command = [&["keys", "create", "--tenant", "main"], scopes.as_flattened()].concat();
    let printed = home.succeed(&command).await;
    let key = printed.lines().next().unwrap();
    let service = Service::start_with(&home, &["--set", "metrics.enabled=true"])
        .await
        .with_key(key);
    let document = write_description(&home, &service).await;
    let mut description: Value = serde_json::from_slice(&fs::read(&document).unwrap()).unwrap();
    // This stream never ends.
    let changes = description["paths"].as_object_mut().unwrap().remove("/v1/changes");
    assert!(changes.is_some());
    home.write("openapi.json", &description.to_string());
    let report = succeed(
        Command::new(Path::new(&python).with_file_name("schemathesis"))
            .args(["--config-file", &format!("{FOLDER}/schemathesis.toml"), "run"])
            .arg(&document)
            .args(["--url", &format!("http://{}", service.address)])
            .args(["--header", &format!("Authorization: Bearer {key}")])
            .args(["--checks", "all", "--exclude-checks", "positive_data_acceptance"])
            .arg("--no-color")
            .env("SCHEMATHESIS_HOOKS", "checks")
            .env("PYTHONPATH", FOLDER)
            .current_dir(home.path()),
    );
    let paths = description["paths"].as_object().unwrap().values();
    let operations: usize = paths.map(|path| path.as_object().unwrap().len()).sum();
    assert!(report.contains(&format!("Tested: {operations}")), "{report}");
}
