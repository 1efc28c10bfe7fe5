//! The store that a command works on: the command names it, does not make it by reading, and
//! explains how to choose another one.

use std::fs;

use test_support::databases::TestDatabase;

use super::binary::Home;
use crate::end_to_end::on_every_store;
use crate::support::text::assert_contains;

on_every_store!(
    reading_makes_no_store,
    commands_name_their_store,
    making_a_key_reports_where_authentication_is_on
);

const MISSING: &str = "01890000-0000-7000-8000-000000000000";
/// Commands that work on what there is.
const READING: [&[&str]; 16] = [
    &["sessions", "list"],
    &["sessions", "tree"],
    &["sessions", "show", MISSING],
    &["sessions", "diff", MISSING, MISSING],
    &["runs", "list"],
    &["runs", "show", MISSING],
    &["threads", "list"],
    &["threads", "show", "missing"],
    &["agents", "list"],
    &["agents", "show", "missing"],
    &["keys", "list"],
    &["keys", "revoke", MISSING],
    &["tokens", "revoke", "--issuer", "main", "--sub", "user"],
    &["gc"],
    &["gc", "--dry-run"],
    &["tenants", "delete", "acme", "--yes"],
];

/// Returns the line of standard error that names the store.
fn named(stderr: &str) -> &str {
    let mut lines = stderr.lines().filter_map(|line| line.strip_prefix("store "));
    let named = lines.next().unwrap_or_else(|| panic!("no store in {stderr}"));
    assert_eq!(lines.next(), None, "{stderr}");
    named
}

async fn reading_makes_no_store(database: TestDatabase) {
    database.remove_tables().await;
    let home = Home::new(database.url());
    for command in READING {
        let complaint = home.fail(command).await;
        assert_contains!(complaint, "`agent-runtime migrate`"; "{command:?}");
        if let Some(path) = database.url().strip_prefix("sqlite://") {
            assert_contains!(complaint, path, "--store-url or AGENT_RUNTIME__STORE__URL"; "{command:?}");
            assert!(!fs::exists(path).unwrap(), "{command:?} made {path}");
        }
    }
    if !database.url().starts_with("sqlite") {
        let tables = "select count(*) from information_schema.tables where table_schema = current_schema()";
        assert_eq!(database.number(tables).await, 0);
    }
}

async fn commands_name_their_store(database: TestDatabase) {
    let home = Home::new(database.url());
    let first = home.run(&["run", "What is 1 + 1?"]).await;
    let is_file = database.url().starts_with("sqlite");
    assert_eq!(named(&first.stderr).ends_with(" (new)"), is_file, "{}", first.stderr);
    let second = home.run(&["run", "What is 1 + 1?"]).await;
    let address = named(&second.stderr);
    assert!(!address.ends_with(" (new)"), "{address}");
    if is_file {
        assert_eq!(address, database.url());
    } else {
        assert!(
            address.starts_with("postgres") && !address.contains("(new)"),
            "{address}"
        );
    }
    for command in READING {
        let ended = home.run(command).await;
        assert_eq!(named(&ended.stderr), address, "{command:?}");
    }
}

async fn making_a_key_reports_where_authentication_is_on(database: TestDatabase) {
    let home = Home::new(database.url());
    let create = ["keys", "create", "--tenant", "acme"];
    let first = home.run(&create).await;
    named(&first.stderr);
    assert_contains!(
        first.stderr,
        "authentication is on within a second: every service on this store"
    );
    let second = home.run(&create).await;
    assert_contains!(second.stderr, "authentication is on: every service on this store");
    assert_eq!(named(&second.stderr), named(&first.stderr).trim_end_matches(" (new)"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_named_by_its_whole_path() {
    let home = Home::new("sqlite://data/store.db");
    let ended = home.run(&["run", "What is 1 + 1?"]).await;
    let path = fs::canonicalize(home.path()).unwrap().join("data/store.db");
    assert_eq!(
        named(&ended.stderr),
        format!("sqlite://{} (new)", path.display()),
        "{}",
        ended.stderr
    );
    // From another folder, the name leads to it.
    let elsewhere = Home::new(named(&ended.stderr).trim_end_matches(" (new)"));
    let tree = elsewhere.succeed(&["sessions", "tree"]).await;
    assert_eq!(tree.lines().count(), 1, "{tree}");
}
