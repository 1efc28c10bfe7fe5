//! Verification finds what was changed without the store, and names it.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;

use serde_json::json;
use test_support::databases::Engine;
use test_support::drafts::{summary, tenant, user};
use test_support::processors::HeldProcessors;
use values::session::{Bundle, EnvironmentState};

use crate::fixtures::Fixture;

on_both_engines!(
    a_sound_line_has_no_faults,
    changed_messages_are_found,
    lost_segments_are_found,
    changed_states_are_found,
    changed_sessions_are_found,
    changed_agent_instances_are_found,
    changed_origins_are_found,
    changed_starts_of_histories_are_found,
    lost_ancestors_are_found,
);

/// Three sessions on two branches, the last with an environment of its own.
async fn line(fixture: &Fixture) -> [Arc<Bundle>; 3] {
    let root = fixture.root(&["root", "answer"]).await;
    fixture.child(&root, &["aside"]).await;
    let fork = fixture.child(&root, &["fork"]).await;
    let mut commit = fixture.commit(Some(&fork), &["tip"]);
    commit.draft.environment = Arc::new(EnvironmentState::default());
    let tip = fixture.publish(&commit).await;
    fixture.database.allow_updates().await;
    [root, fork, tip]
}

/// Verifies the tip; returns the index of the session and the part of each fault.
async fn faults(fixture: &Fixture, line: &[Arc<Bundle>; 3]) -> BTreeSet<(usize, &'static str)> {
    let tip = line[2].head.session_id;
    let report = fixture.verify(tip).await;
    let index = |id| line.iter().position(|bundle| bundle.head.session_id == id).unwrap();
    report
        .faults
        .iter()
        .map(|fault| (index(fault.session_id), fault.part))
        .collect()
}

/// Writes bytes, given in hexadecimal digits, in the engine's own way.
fn bytes(fixture: &Fixture, hex: &str) -> String {
    match fixture.database.engine {
        Engine::Postgres => format!(r"'\x{hex}'::bytea"),
        Engine::Sqlite => format!("x'{hex}'"),
    }
}

/// Writes an id as the engine does.
fn id(fixture: &Fixture, uuid: uuid::Uuid) -> String {
    match fixture.database.engine {
        Engine::Postgres => format!("'{uuid}'"),
        Engine::Sqlite => format!("x'{}'", uuid.simple()),
    }
}

async fn a_sound_line_has_no_faults(fixture: Fixture) {
    let line = line(&fixture).await;
    let tip = line[2].head.session_id;
    let report = fixture.verify(tip).await;
    assert_eq!((report.sessions, report.messages, report.faults), (3, 4, vec![]));
}

async fn changed_messages_are_found(fixture: Fixture) {
    let line = line(&fixture).await;
    let branch = id(&fixture, line[1].head.position.branch_id.as_uuid());
    let empty = bytes(&fixture, "5b5d");
    let update = format!(
        "update history_segments set payload = {empty}, encoding = 0 where branch_id = {branch} and position = 0"
    );
    fixture.execute(&update).await;
    assert_eq!(faults(&fixture, &line).await, [(1, "message_history_state")].into());
    let update = format!("update history_segments set message_count = 0 where branch_id = {branch} and position = 0");
    fixture.execute(&update).await;
    assert_eq!(faults(&fixture, &line).await, [(1, "message_history_state")].into());
}

async fn lost_segments_are_found(fixture: Fixture) {
    let line = line(&fixture).await;
    let branch = id(&fixture, line[2].head.position.branch_id.as_uuid());
    fixture
        .execute(&format!(
            "delete from history_segments where branch_id = {branch} and position = 1"
        ))
        .await;
    assert_eq!(faults(&fixture, &line).await, [(2, "message_history_state")].into());
}

async fn changed_states_are_found(fixture: Fixture) {
    let line = line(&fixture).await;
    let hash = bytes(&fixture, &line[2].head.environment_hash.to_string());
    let other = bytes(&fixture, "7b7d");
    fixture
        .execute(&format!(
            "update states set payload = {other}, encoding = 0 where hash = {hash}"
        ))
        .await;
    assert_eq!(faults(&fixture, &line).await, [(2, "environment_state")].into());
    let contexts = [
        (0, "context_state"),
        (1, "context_state"),
        (2, "context_state"),
        (2, "environment_state"),
    ];
    for change in ["update states set schema_version = 2", "delete from states"] {
        let change = format!("{change} where kind = 'context'");
        fixture.execute(&change).await;
        assert_eq!(faults(&fixture, &line).await, contexts.into(), "{change}");
    }
}

async fn changed_sessions_are_found(fixture: Fixture) {
    let line = line(&fixture).await;
    let session = id(&fixture, line[1].head.session_id.as_uuid());
    fixture
        .execute(&format!(
            "update sessions set agent = 'else' where session_id = {session}"
        ))
        .await;
    assert_eq!(faults(&fixture, &line).await, [(1, "root_hash")].into());
    let hash = bytes(&fixture, &line[0].head.root_hash.to_string());
    let update = format!("update sessions set agent = 'demo', root_hash = {hash} where session_id = {session}");
    fixture.execute(&update).await;
    assert_eq!(
        faults(&fixture, &line).await,
        [(1, "root_hash"), (2, "root_hash")].into()
    );
}

async fn changed_agent_instances_are_found(fixture: Fixture) {
    let line = line(&fixture).await;
    let session = id(&fixture, line[1].head.session_id.as_uuid());
    let set = async |columns: &str| {
        let update = format!("update sessions set {columns} where session_id = {session}");
        fixture.execute(&update).await;
    };
    let second = match fixture.database.engine {
        Engine::Postgres => "interval '1 second'",
        Engine::Sqlite => "1000000",
    };
    let agent = id(&fixture, line[1].context.agent_id.as_uuid());
    for (change, back) in [
        (format!("agent_id = {session}"), format!("agent_id = {agent}")),
        (
            format!("agent_created_at = agent_created_at + {second}"),
            format!("agent_created_at = agent_created_at - {second}"),
        ),
    ] {
        set(&change).await;
        assert_eq!(faults(&fixture, &line).await, [(1, "root_hash")].into(), "{change}");
        set(&back).await;
        assert_eq!(faults(&fixture, &line).await, [].into(), "{back}");
    }
}

async fn changed_origins_are_found(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let side = fixture.child(&root, &["side"]).await.head.session_id;
    let mut commit = fixture.commit(Some(&root), &["merge"]);
    commit.draft.merged_session_id = Some(side);
    let merge = fixture.publish(&commit).await;
    let mut commit = fixture.commit(Some(&merge), &["tip"]);
    commit.draft.environment_session_id = Some(side);
    let tip = fixture.publish(&commit).await;
    assert_eq!(fixture.load(tip.head.session_id).await, *tip);
    assert_eq!(fixture.head(merge.head.session_id).await.as_ref(), Some(&merge.head));
    let line = [root, merge, tip];
    fixture.database.allow_updates().await;
    assert_eq!(faults(&fixture, &line).await, [].into());
    let root = id(&fixture, line[0].head.session_id.as_uuid());
    let side = id(&fixture, side.as_uuid());
    let null = "null".to_owned();
    for (index, column, right, forged) in [
        (0, "merged_session_id", &null, &side),
        (0, "environment_session_id", &null, &side),
        (1, "merged_session_id", &side, &null),
        (1, "merged_session_id", &side, &root),
        (2, "environment_session_id", &side, &null),
        (2, "environment_session_id", &side, &root),
        (2, "root_session_id", &root, &side),
    ] {
        let session = id(&fixture, line[index].head.session_id.as_uuid());
        let set = |value: &str| format!("update sessions set {column} = {value} where session_id = {session}");
        fixture.execute(&set(forged)).await;
        // The root hash does not cover the root of the tree.
        let part = if column == "root_session_id" {
            column
        } else {
            "root_hash"
        };
        assert_eq!(faults(&fixture, &line).await, [(index, part)].into(), "{column}");
        fixture.execute(&set(right)).await;
        assert_eq!(faults(&fixture, &line).await, [].into(), "{column}");
    }
}

async fn changed_starts_of_histories_are_found(fixture: Fixture) {
    let root = fixture.root(&["0", "1", "2"]).await;
    let commit = fixture.commit_of(Some(&root), vec![user("3"), summary("all", 0, 2)]);
    let compacted = fixture.publish(&commit).await;
    let tip = fixture.child(&compacted, &["5"]).await;
    let line = [root, compacted, tip];
    fixture.database.allow_updates().await;
    assert_eq!(faults(&fixture, &line).await, [].into());
    // One that continues the changed one has its start from there, unless it has a summary of its
    // own.
    for (changed, found) in [(0, &[0][..]), (1, &[1, 2]), (2, &[2])] {
        let session = id(&fixture, line[changed].head.session_id.as_uuid());
        let set = |start: u64| format!("update sessions set history_start = {start} where session_id = {session}");
        fixture.execute(&set(1)).await;
        let expected: BTreeSet<_> = found.iter().map(|index| (*index, "message_history_state")).collect();
        assert_eq!(faults(&fixture, &line).await, expected, "{changed}");
        let right = line[changed].head.history_start;
        fixture.execute(&set(right)).await;
    }
}

async fn lost_ancestors_are_found(fixture: Fixture) {
    let line = line(&fixture).await;
    let session = id(&fixture, line[0].head.session_id.as_uuid());
    fixture
        .execute(&format!("delete from sessions where session_id = {session}"))
        .await;
    assert!(faults(&fixture, &line).await.contains(&(1, "root_hash")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_that_waits_for_its_turn_holds_no_connection() {
    let Some(mut fixture) = Fixture::on_one_connection().await else {
        return;
    };
    fixture.tenant = tenant("verifier");
    let mut commit = fixture.commit(None, &["root"]);
    let variables = json!({"variables": {"text": "x".repeat(1 << 20)}});
    commit.draft.environment = Arc::new(serde_json::from_value(variables).unwrap());
    let session_id = fixture.publish(&commit).await.head.session_id;
    let held = HeldProcessors::of(&fixture.tenant).await;
    let mut verifying = pin!(fixture.store.session_verify(&fixture.tenant, session_id));
    let others = async {
        // They take turns at the connection with the verification, which so comes to the states.
        for _ in 0..50 {
            let found = fixture.head(session_id).await;
            assert!(found.is_some());
        }
    };
    tokio::select! {
        report = &mut verifying => panic!("{report:?}"),
        () = others => (),
    }
    drop(held);
    let report = verifying.await;
    assert!(report.unwrap().unwrap().faults.is_empty());
}
