//! Runs whose directory is a layer over a shared one, or copied from one in use: a session with
//! many files is forked while another run holds it.

use agent_runtime::json::Value;
use agent_runtime::sandbox::{Sandbox, SandboxSettings};
use reqwest::Method;
use serde_json::json;

use super::operations::{plain_shell, sequences};
use super::shell::{LIST, take_turn};
use super::{calls, put_scripted, results, tree};
use crate::end_to_end::on_every_store;
use crate::support::databases::TestDatabase;
use crate::support::mock_model::{MockModel, Reply};
use crate::support::test_app::TestApp;

on_every_store!(
    layers_over_a_shared_directory_show_and_export_what_commands_do,
    copies_of_a_directory_in_use_show_and_export_what_commands_do,
    a_run_finds_the_same_in_the_directory_of_the_run_before_as_in_a_new_one,
);

/// Makes the files of the session: enough for the directory to be shared, at the paths that
/// operations change.
const SEED: &str = "mkdir -p s/a s/b/c t && for i in $(seq 70); do echo $i > s/a/$i; done && \
                    echo 1 > s/b/c/a && echo 2 > s/c && ln -s b s/l && echo 3 > t/a && chmod +x s/a/7";
/// Prints the kind of the file system.
const KIND: &str = "stat -f -c %T .";

async fn layers_over_a_shared_directory_show_and_export_what_commands_do(database: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let settings = SandboxSettings {
        helper: env!("CARGO_BIN_EXE_agent-runtime").into(),
        ..SandboxSettings::default()
    };
    let sandbox = Sandbox::probe(settings, folder.path()).await.unwrap();
    match &sandbox.protections().overlay_error {
        None => check(database, "auto", true).await,
        Some(error) => eprintln!("LEFT OUT: layers ({error})"),
    }
}

async fn copies_of_a_directory_in_use_show_and_export_what_commands_do(database: TestDatabase) {
    check(database, "off", false).await;
}

/// Changes what no session holds: most bits of modes, and that two names lead to one file.
async fn a_run_finds_the_same_in_the_directory_of_the_run_before_as_in_a_new_one(database: TestDatabase) {
    const CHANGE: &str = "mkdir -m 1777 d e; echo 1 > d/a; echo 2 > d/b; echo 3 > e/f; ln d/a d/c; \
                          chmod 400 d/a; chmod 711 d/b; chmod 500 e; chmod 755 . && stat -c '%a %h' d/a d/b";
    const SHOW: &str = "stat -c '%a %n' . d e; stat -c '%a %h %n' d/* e/f; echo 4 > d/c; cat d/a";
    const SHOWN: &str = "700 .\n755 d\n755 e\n644 1 d/a\n755 1 d/b\n644 1 d/c\n644 1 e/f\n1\n";
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let app = TestApp::start(database.url(), &mock, &[]).await;
    let elsewhere = TestApp::start(database.url(), &mock, &[]).await;
    for command in [CHANGE.to_owned(), CHANGE.replace("ln ", "cp ")] {
        let changed = shell(&app, &Value::Null, &command).await;
        let links = if command == CHANGE { 2 } else { 1 };
        assert_eq!(results(&app, &changed).await, [format!("400 {links}\n711 1\n")]);
        for place in [&app, &elsewhere] {
            let run = shell(place, &changed["session_id"], SHOW).await;
            assert_eq!(results(place, &run).await, [SHOWN]);
        }
    }
    elsewhere.finish().await;
    app.finish().await;
}

/// Does operations in forks of a session that another run holds.
async fn check(database: TestDatabase, namespaces: &str, is_layered: bool) {
    let mock = MockModel::start(|_| Reply::text("unused")).await;
    let settings = [
        ("sandbox.namespaces", namespaces),
        ("sandbox.retained_directories", "0"),
    ];
    let app = TestApp::start(database.url(), &mock, &settings).await;
    let elsewhere = TestApp::start(database.url(), &mock, &[]).await;
    let seed = shell(&app, &Value::Null, SEED).await["session_id"].clone();
    let hold = calls(&[("shell", json!({"command": "sleep 600"}))]);
    put_scripted(&app, "holder", &[hold], json!({"tools": ["write_file", "shell"]})).await;
    let holding = app.run_with(json!({"agent": "holder", "input": "go", "base_session_id": seed}));
    let working = async {
        until_in_use(&app, &seed, is_layered).await;
        for (case, operations) in sequences(2, 10).into_iter().enumerate() {
            let oracle = tempfile::tempdir().unwrap();
            plain_shell(oracle.path(), SEED);
            let mut base = seed.clone();
            for (turn, operations) in operations.chunks(5).enumerate() {
                let name = format!("worker-{case}-{turn}");
                base = take_turn(&app, &name, &base, operations, oracle.path()).await;
                let expected = plain_shell(oracle.path(), LIST);
                let before = tree(&app, &base).await;
                for place in [&app, &elsewhere] {
                    let run = shell(place, &base, LIST).await;
                    assert_eq!(results(place, &run).await[0], expected, "{operations:#?}");
                    assert_eq!(tree(place, &run["session_id"]).await, before);
                }
            }
        }
        // All of them have left the session that they began with as it was.
        assert_eq!(
            tree(&app, &seed).await,
            tree(&app, &shell(&app, &seed, "ls").await["session_id"]).await
        );
        let running = app.get("/v1/runs?status=running").await;
        let holder = running["data"][0]["run_id"].as_str().unwrap().to_owned();
        app.call(Method::POST, &format!("/v1/runs/{holder}/cancel"), None).await;
    };
    let (held, ()) = tokio::join!(holding, working);
    assert_eq!(held["status"], "cancelled", "{held:#}");
    elsewhere.finish().await;
    app.finish().await;
}

/// Runs one command on the files of a session.
async fn shell(app: &TestApp, base: &Value, command: &str) -> Value {
    let step = calls(&[("shell", json!({"command": command}))]);
    put_scripted(app, "one-command", &[step], json!({"tools": ["shell"]})).await;
    let run = json!({"agent": "one-command", "input": "go", "base_session_id": base});
    let run = app.run_with(run).await;
    assert_eq!(run["status"], "completed", "{run:#}");
    run
}

/// Waits until the holder has its directory, so that another run has a layer.
async fn until_in_use(app: &TestApp, seed: &Value, is_layered: bool) {
    loop {
        let run = shell(app, seed, KIND).await;
        let kind = results(app, &run).await.remove(0);
        if (kind.trim() == "overlayfs") == is_layered {
            return;
        }
    }
}
