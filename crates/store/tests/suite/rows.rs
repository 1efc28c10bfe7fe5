//! Unreadable rows are errors that name table, column and row; never a panic, never a shorter
//! history.

use serde_json::json;
use store::StoreError;
use test_support::databases::Engine;
use test_support::drafts::object;

use super::fixtures::Fixture;

on_both_engines!(
    damaged_rows_name_their_table_column_and_id,
    newer_forms_are_refused,
    a_missing_segment_is_no_shorter_history,
    metadata_with_nul_is_an_ordinary_matter,
);

async fn fault_position(fixture: &Fixture, id: values::ids::SessionId) -> (&'static str, &'static str) {
    let error = fixture.store.bundle_load(&fixture.tenant, id).await.unwrap_err();
    let StoreError::Corrupt { table, column, id, .. } = error else {
        panic!("{error:?}");
    };
    assert!(!id.is_empty());
    (table, column)
}

fn bytes(fixture: &Fixture, hex: &str) -> String {
    match fixture.database.engine {
        Engine::Postgres => format!(r"'\x{hex}'::bytea"),
        Engine::Sqlite => format!("x'{hex}'"),
    }
}

async fn damaged_rows_name_their_table_column_and_id(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let id = root.head.session_id;
    fixture.database.corrupt_segments().await;
    assert_eq!(fault_position(&fixture, id).await, ("history_segments", "payload"));
    // Each damage hides the ones before it.
    let zeros = bytes(&fixture, "0000");
    for (update, position) in [
        (
            "update history_segments set encoding = -1".to_owned(),
            ("history_segments", "encoding"),
        ),
        (
            format!("update states set encoding = 0, payload = {zeros}"),
            ("states", "payload"),
        ),
        ("delete from states".to_owned(), ("states", "hash")),
        ("update sessions set depth = -1".to_owned(), ("sessions", "depth")),
        (
            format!("update sessions set root_hash = {zeros}"),
            ("sessions", "root_hash"),
        ),
    ] {
        fixture.execute(&update).await;
        if update.contains("depth") || update.contains("root_hash") {
            let error = fixture.store.session_lookup(&fixture.tenant, id).await.unwrap_err();
            assert!(matches!(error, StoreError::Corrupt { .. }), "{error:?}");
        }
        if !update.contains("root_hash") {
            assert_eq!(fault_position(&fixture, id).await, position);
        }
    }
    let run_id = root.head.run_id.unwrap();
    fixture
        .execute(&format!("update runs set output = {zeros}, steps = {zeros}"))
        .await;
    let output = fixture.store.run_lookup(&fixture.tenant, run_id).await.unwrap_err();
    assert!(
        matches!(output, StoreError::Corrupt { column: "output", .. }),
        "{output:?}"
    );
    let steps = fixture.store.step_list(&fixture.tenant, run_id).await.unwrap_err();
    assert!(
        matches!(steps, StoreError::Corrupt { column: "steps", .. }),
        "{steps:?}"
    );
    fixture.execute("update runs set status = 'dreaming'").await;
    let status = fixture
        .store
        .run_lookup_by_session(&fixture.tenant, id)
        .await
        .unwrap_err();
    assert!(
        matches!(status, StoreError::Corrupt { column: "status", .. }),
        "{status:?}"
    );
}

async fn newer_forms_are_refused(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    fixture.database.allow_updates().await;
    // Each hides the ones before it.
    for (table, column, newer) in [
        ("history_segments", "encoding", 9),
        ("history_segments", "schema_version", 2),
        ("states", "schema_version", 2),
        ("sessions", "schema_version", 2),
    ] {
        fixture.execute(&format!("update {table} set {column} = {newer}")).await;
        assert_eq!(fault_position(&fixture, root.head.session_id).await, (table, column));
    }
}

async fn a_missing_segment_is_no_shorter_history(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let child = fixture.child(&root, &["child"]).await;
    let tip = fixture.child(&child, &["tip"]).await;
    fixture.execute("delete from history_segments where position = 1").await;
    for bundle in [&child, &tip] {
        assert_eq!(
            fault_position(&fixture, bundle.head.session_id).await,
            ("sessions", "message_count")
        );
        let page = fixture
            .store
            .message_list(&fixture.tenant, bundle.head.session_id, 0..2)
            .await;
        assert!(matches!(page.unwrap_err(), StoreError::Corrupt { .. }));
    }
    let listed = fixture
        .store
        .segment_list(&fixture.tenant, child.head.session_id, 1, 9)
        .await;
    assert!(matches!(listed.unwrap_err(), StoreError::Corrupt { .. }));
    assert_eq!(fixture.load(root.head.session_id).await, *root);
}

async fn metadata_with_nul_is_an_ordinary_matter(fixture: Fixture) {
    let mut commit = fixture.commit(None, &["root"]);
    commit.draft.context.metadata = object(json!({"nul": "a\u{0}b"}));
    match (fixture.database.engine, fixture.store.session_commit(&commit).await) {
        (Engine::Sqlite, published) => assert_eq!(
            fixture
                .load(published.unwrap().session.head.session_id)
                .await
                .head
                .metadata["nul"],
            "a\u{0}b"
        ),
        (Engine::Postgres, published) => {
            let error = published.unwrap_err();
            assert!(
                matches!(error, store::CommitError::Store(StoreError::Failed { .. })),
                "{error:?}"
            );
            assert_eq!(fixture.count("history_segments").await, 0);
        }
    }
    fixture.root(&["the store goes on"]).await;
}
