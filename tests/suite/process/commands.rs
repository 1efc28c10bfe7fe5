//! The commands beside `serve`, on the same store: their output, their errors and their exit
//! codes.

use serde_json::Value;
use test_support::databases::TestDatabase;

use super::binary::{Ended, Home};
use super::service::Service;
use crate::end_to_end::on_every_store;
use crate::support::members::assert_members;
use crate::support::mock_model::{MockModel, Reply};

on_every_store!(runs_are_made_and_shown, migrating_twice_changes_nothing);

/// Returns the session that the output of a run proposes to continue.
fn session_of(ended: &Ended) -> String {
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (_, rest) = ended.stderr.split_once("--base ").unwrap();
    rest.split_whitespace().next().unwrap().to_owned()
}

async fn runs_are_made_and_shown(database: TestDatabase) {
    let home = Home::new(database.url());
    let first = home.run(&["run", "What is 17 * 23?"]).await;
    assert!(first.stdout.contains("= 391"), "{}", first.stdout);
    assert!(first.stdout.ends_with('\n'));
    assert!(first.stderr.contains("calculator"), "{}", first.stderr);
    assert!(first.stderr.contains("status completed"), "{}", first.stderr);
    let root = session_of(&first);
    let second = home.run(&["run", "and 2 + 2?", "--base", &root]).await;
    assert!(second.stdout.contains("2 message(s)"), "{}", second.stdout);
    let child = session_of(&second);
    let fork = session_of(&home.run(&["run", "and 3 + 3?", "--base", &root]).await);

    let shown: Value = serde_json::from_str(&home.succeed(&["sessions", "show", &child]).await).unwrap();
    assert_members!(shown, {"session_id": child, "parent_session_id": root, "agent": "demo"});
    let tree = home.succeed(&["sessions", "tree"]).await;
    let lines: Vec<&str> = tree.lines().collect();
    assert_eq!(lines.len(), 3, "{tree}");
    assert!(lines[0].starts_with(&root), "{tree}");
    for session in [&child, &fork] {
        assert!(
            lines[1..].iter().any(|line| line.starts_with(&format!("  {session}"))),
            "{tree}"
        );
        let of_one = home.succeed(&["sessions", "tree", session]).await;
        assert_eq!(of_one, tree);
    }
    let diff: Value = serde_json::from_str(&home.succeed(&["sessions", "diff", &child, &fork]).await).unwrap();
    assert!(diff.to_string().contains("and 3 + 3?"), "{diff:#}");
    for arguments in [&["sessions", "show", &child][..], &["sessions", "diff", &child, &fork]] {
        let asked = [arguments, &["--json"]].concat();
        assert_eq!(home.succeed(&asked).await, home.succeed(arguments).await, "{asked:?}");
    }

    // A service on the same store knows what was made.
    let service = Service::start(&home).await;
    let served = service.get(&format!("/v1/sessions/{child}")).await;
    for part in ["root_hash", "environment_state", "context_state"] {
        assert_eq!(served[part], shown[part], "{part}");
    }
    let messages = |session: &Value| session["message_history_state"]["messages"].clone();
    assert_eq!(messages(&served), messages(&shown));
    // And the other way round, while it serves.
    let made = service.run("demo", Some(&child), "What is 5 * 5?").await;
    let made = made["session_id"].as_str().unwrap();
    home.succeed(&["sessions", "show", made]).await;
    // An arrow marks what continues the session above it.
    let tree = home.succeed(&["sessions", "tree"]).await;
    let lines: Vec<&str> = tree.lines().collect();
    let above = lines.iter().position(|line| line.starts_with(&format!("  {child}")));
    assert!(lines[above.unwrap() + 1].starts_with(&format!("  ↳ {made}")), "{tree}");
    service.stop().await;
}

async fn migrating_twice_changes_nothing(database: TestDatabase) {
    database.remove_tables().await;
    let home = Home::new(database.url()).variable("AGENT_RUNTIME__STORE__MIGRATE", "false");
    let complaint = home.fail(&["serve"]).await;
    assert!(complaint.contains("agent-runtime migrate"), "{complaint}");
    for _ in 0..2 {
        let printed = home.succeed(&["migrate"]).await;
        assert!(printed.contains("is up to date"), "{printed}");
    }
    let service = Service::start(&home).await;
    service.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failures_set_the_exit_code() {
    let mock = MockModel::start(|_| Reply::Status(401, r#"{"error": {"message": "bad key"}}"#.to_owned())).await;
    let home = Home::with_file().with_mock(&mock);
    let missing = "01890000-0000-7000-8000-000000000000";
    for (arguments, expected) in [
        (&["run", "hi", "--agent", "echo"][..], "model"),
        (&["run", "hi", "--agent", "nobody"], "nobody"),
        (&["run", "hi", "--model", "nowhere/m"], "nowhere"),
        (&["run", "hi", "--model", "nonsense"], "nonsense"),
        (&["run", "hi", "--base", missing], missing),
        (&["run", "hi", "--base", "nonsense"], "nonsense"),
        (&["run", ""], "error: the text is empty"),
        (&["run"], "<TEXT>"),
        (&["sessions", "show", missing], missing),
        (&["sessions", "tree", missing], missing),
        (&["sessions", "diff", missing, missing], missing),
        (&["sessions", "show", "nonsense"], "nonsense"),
        (&["nonsense"], "nonsense"),
    ] {
        let complaint = home.fail(arguments).await;
        assert!(complaint.contains(expected), "{arguments:?}: {complaint}");
        assert!(!complaint.contains("panicked"), "{complaint}");
    }
    // A failed run has an id to look it up by.
    let failed = home.run(&["run", "hi", "--agent", "echo"]).await;
    assert!(failed.stderr.contains("status failed"), "{}", failed.stderr);
    assert_eq!(failed.stdout, "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_closed_output_is_no_error() {
    let home = Home::with_file();
    session_of(&home.run(&["run", "What is 1 + 1?"]).await);
    for arguments in [
        &["sessions", "tree"][..],
        &["openapi"],
        &["check-config"],
        &["keys", "list"],
        &["--help"],
    ] {
        let ended = home.start_unread(arguments).end().await;
        assert_eq!(ended.code, Some(0), "{arguments:?}: {}", ended.stderr);
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    }
    let ended = home.start_shell("agent-runtime openapi | head -1").end().await;
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("{\n", ""));
}
