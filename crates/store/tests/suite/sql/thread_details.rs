//! Threads have a title and metadata of their own, and are found by them.

use std::collections::BTreeSet;

use agent::record::{ThreadName, ThreadRecord};
use serde_json::json;
use store::TimeRange;
use store::threads::{
    MetadataChange, ThreadCreate, ThreadDetails, ThreadDraft, ThreadExpectation, ThreadFilter, ThreadPage, ThreadPatch,
    ThreadPatched, ThreadPut,
};
use test_support::drafts::{now, object, session_id, tenant};
use values::clock::Timestamp;
use values::ids::SessionId;
use values::json::Object;
use values::session::Setting;

use super::queue::fixtures::thread_name as name;
use crate::fixtures::Fixture;

on_both_engines!(
    a_thread_is_created_once_with_or_without_a_session,
    the_title_and_the_metadata_change_and_nothing_else,
    metadata_that_changes_at_the_same_time_has_all_changes,
    threads_are_found_by_agent_metadata_and_time,
);

async fn lookup(fixture: &Fixture, name: &ThreadName) -> Option<ThreadRecord> {
    fixture.store.thread_lookup(&fixture.tenant, name).await.unwrap()
}

async fn create(
    fixture: &Fixture,
    text: &str,
    metadata: serde_json::Value,
    session_id: Option<SessionId>,
    now: Timestamp,
) -> ThreadCreate {
    let details = ThreadDetails {
        title: Some(format!("About {text}")),
        metadata: object(metadata),
    };
    let draft = ThreadDraft {
        name: name(text),
        details,
        session_id,
        created_at: now,
    };
    let created = fixture.store.thread_create(&fixture.tenant, &draft, None);
    created.await.unwrap()
}

async fn patch(fixture: &Fixture, text: &str, patch: ThreadPatch) -> ThreadPatched {
    let thread = name(text);
    let patched = fixture.store.thread_patch(&fixture.tenant, &thread, &patch, now());
    patched.await.unwrap()
}

fn merge(pairs: serde_json::Value) -> ThreadPatch {
    ThreadPatch {
        metadata: Some(MetadataChange::Merge(object(pairs))),
        ..ThreadPatch::default()
    }
}

async fn a_thread_is_created_once_with_or_without_a_session(fixture: Fixture) {
    let root = fixture.root(&["one", "two"]).await.head.session_id;
    let at = now();
    let empty = ThreadRecord {
        name: name("empty"),
        title: Some("About empty".to_owned()),
        metadata: object(json!({"user": "ada", "score": 1e16})),
        session_id: None,
        agent: None,
        message_count: 0,
        run_count: 0,
        version: 0,
        created_at: at,
        updated_at: at,
    };
    let metadata = json!({"user": "ada", "score": 1e16, "absent": null});
    let created = create(&fixture, "empty", metadata, None, at).await;
    assert_eq!(created, ThreadCreate::Created(empty.clone()));
    let full = ThreadRecord {
        name: name("full"),
        title: Some("About full".to_owned()),
        metadata: Object::new(),
        session_id: Some(root),
        agent: Some("demo".to_owned()),
        message_count: 2,
        version: 1,
        ..empty.clone()
    };
    let created = create(&fixture, "full", json!({}), Some(root), at).await;
    assert_eq!(created, ThreadCreate::Created(full.clone()));
    for session_id in [None, Some(root), Some(session_id())] {
        let again = create(&fixture, "full", json!({"other": 1}), session_id, now()).await;
        assert_eq!(again, ThreadCreate::Exists, "{session_id:?}");
    }
    let missing = session_id();
    let created = create(&fixture, "new", json!({}), Some(missing), now()).await;
    assert_eq!(created, ThreadCreate::NoSession(missing));
    for thread in [&empty, &full] {
        assert_eq!(lookup(&fixture, &thread.name).await.as_ref(), Some(thread));
    }
    assert_eq!(fixture.count("threads").await, 2);
    let expected = ThreadExpectation::At(None);
    let moving = fixture
        .store
        .thread_put(&fixture.tenant, &empty.name, root, expected, now());
    let moved = moving.await.unwrap();
    let ThreadPut::Moved(moved) = moved else {
        panic!("{moved:?}")
    };
    assert_eq!((moved.title, moved.metadata), (empty.title, empty.metadata));
}

async fn the_title_and_the_metadata_change_and_nothing_else(fixture: Fixture) {
    assert_eq!(
        patch(&fixture, "t", merge(json!({"a": 1}))).await,
        ThreadPatched::Absent
    );
    let root = fixture.root(&["root"]).await.head.session_id;
    create(&fixture, "t", json!({"a": 1, "b": 2}), Some(root), now()).await;
    let before = lookup(&fixture, &name("t")).await.unwrap();
    let title = |title| ThreadPatch {
        title,
        ..ThreadPatch::default()
    };
    let replaced = ThreadPatch {
        metadata: Some(MetadataChange::Replace(object(json!({"d": 4})))),
        ..ThreadPatch::default()
    };
    for (change, expected_title, expected) in [
        (ThreadPatch::default(), Some("About t"), json!({"a": 1, "b": 2})),
        (
            merge(json!({"b": null, "c": {"x": 1.0}})),
            Some("About t"),
            json!({"a": 1, "c": {"x": 1.0}}),
        ),
        (
            title(Setting::Set("New".to_owned())),
            Some("New"),
            json!({"a": 1, "c": {"x": 1.0}}),
        ),
        (replaced, Some("New"), json!({"d": 4})),
        (title(Setting::Cleared), None, json!({"d": 4})),
    ] {
        let patched = patch(&fixture, "t", change).await;
        let ThreadPatched::Changed(thread) = patched else {
            panic!("{patched:?}")
        };
        let changed = ThreadRecord {
            title: expected_title.map(ToOwned::to_owned),
            metadata: object(expected),
            updated_at: thread.updated_at,
            ..before.clone()
        };
        assert_eq!(thread, changed);
        assert_eq!(lookup(&fixture, &name("t")).await, Some(changed));
    }
    let many: Object = (0..64).map(|key| (key.to_string(), json!(key))).collect();
    let refused = patch(&fixture, "t", merge(serde_json::Value::Object(many))).await;
    assert!(
        matches!(&refused, ThreadPatched::TooLarge(rule) if rule.contains("64")),
        "{refused:?}"
    );
    assert_eq!(
        lookup(&fixture, &name("t")).await.unwrap().metadata,
        object(json!({"d": 4}))
    );
    let (other, thread, change) = (tenant("other"), name("t"), merge(json!({})));
    let foreign = fixture.store.thread_patch(&other, &thread, &change, now());
    assert_eq!(foreign.await.unwrap(), ThreadPatched::Absent);
}

async fn metadata_that_changes_at_the_same_time_has_all_changes(fixture: Fixture) {
    create(&fixture, "t", json!({}), None, now()).await;
    let keys: BTreeSet<String> = (0..16).map(|key| format!("k{key}")).collect();
    let changes = keys.iter().map(|key| patch(&fixture, "t", merge(json!({key: true}))));
    futures_util::future::join_all(changes).await;
    let metadata = lookup(&fixture, &name("t")).await.unwrap().metadata;
    assert_eq!(metadata.keys().cloned().collect::<BTreeSet<_>>(), keys);
}

async fn threads_are_found_by_agent_metadata_and_time(fixture: Fixture) {
    let root = fixture.root(&["root"]).await.head.session_id;
    let hour = |hour: i64| Timestamp::UNIX_EPOCH + chrono::TimeDelta::hours(hour);
    create(&fixture, "a", json!({"user": "ada", "n": 1}), Some(root), hour(1)).await;
    create(&fixture, "b", json!({"user": "bob", "n": 1}), None, hour(2)).await;
    create(&fixture, "c", json!({}), None, hour(3)).await;
    let page = ThreadPage { after: None, limit: 9 };
    let found = async |filter: ThreadFilter| -> Vec<String> {
        let listed = fixture
            .store
            .thread_list(&fixture.tenant, &filter, &page)
            .await
            .unwrap();
        listed.iter().map(|thread| thread.name.to_string()).collect()
    };
    let of_agent = |agent: &str| ThreadFilter {
        agent: Some(agent.to_owned()),
        ..ThreadFilter::default()
    };
    let with = |metadata| ThreadFilter {
        metadata: object(metadata),
        ..ThreadFilter::default()
    };
    let range = |from, until| TimeRange {
        from: Some(hour(from)),
        until: Some(hour(until)),
    };
    assert_eq!(found(of_agent("demo")).await, ["a"]);
    assert_eq!(found(of_agent("other")).await, [] as [&str; 0]);
    assert_eq!(found(with(json!({"n": 1.0}))).await, ["a", "b"]);
    assert_eq!(found(with(json!({"n": 1, "user": "bob"}))).await, ["b"]);
    assert_eq!(found(with(json!({"n": 2}))).await, [] as [&str; 0]);
    let created = ThreadFilter {
        created: range(1, 3),
        ..ThreadFilter::default()
    };
    assert_eq!(found(created).await, ["a", "b"]);
    let (thread, change) = (name("c"), ThreadPatch::default());
    let touched = fixture.store.thread_patch(&fixture.tenant, &thread, &change, hour(9));
    touched.await.unwrap();
    let updated = ThreadFilter {
        updated: range(2, 10),
        ..ThreadFilter::default()
    };
    assert_eq!(found(updated).await, ["b", "c"]);
}
