//! Bundles come back exactly, at any depth, and a turn writes only what it adds.

use std::sync::Arc;

use serde_json::json;
use store::sessions::{Commit, ConflictPolicy, SessionFilter};
use store::{CommitError, Page, StoreError};
use test_support::drafts::{call, draft, object, result, run_of, session_id, tenant, user};
use values::message::ContentPart;
use values::session::EnvironmentState;

use crate::fixtures::Fixture;

on_both_engines!(
    a_bundle_loads_as_it_was_returned,
    any_content_survives,
    unchanged_states_are_not_written_again,
    a_fork_writes_one_branch_and_its_own_messages,
    a_line_of_two_thousand_turns_loads_whole,
    forks_of_forks_share_nothing_after_their_base,
    a_history_that_no_provider_accepts_is_refused,
    a_history_must_continue_its_base,
    other_tenants_see_nothing,
    a_base_of_another_tenant_is_refused,
    committed_rows_refuse_updates,
    messages_are_read_by_index,
);

async fn a_bundle_loads_as_it_was_returned(fixture: Fixture) {
    let root = fixture.root(&["one", "two"]).await;
    assert_eq!((root.head.depth, root.head.message_count), (0, 2));
    let child = fixture.child(&root, &["three"]).await;
    let silent = fixture.child(&child, &[]).await;
    let last = fixture.child(&silent, &["four"]).await;
    assert_eq!((last.head.depth, last.head.message_count), (3, 4));
    for bundle in [root, child, silent, last] {
        let loaded = fixture.load(bundle.head.session_id).await;
        assert_eq!(loaded, *bundle);
        assert_eq!(loaded.history.bytes(), bundle.history.bytes());
        let head = fixture.head(bundle.head.session_id).await;
        assert_eq!(head, Some(bundle.head.clone()));
    }
    fixture.store.close().await;
}

async fn any_content_survives(fixture: Fixture) {
    let huge = "\u{1f980} NUL \u{0} \\ \" \u{7f} ".repeat(150_000);
    let texts = ["a\u{0}b", "\u{feff}\u{202e}\u{10ffff}", &huge];
    let mut messages: Vec<_> = texts.iter().map(|text| user(text)).collect();
    messages.extend([call("c1"), result("c1")]);
    let unknown: ContentPart = serde_json::from_value(json!({"type": "hologram", "depth": 0.1})).unwrap();
    let mut strange = (*user("")).clone();
    strange.content.push(unknown);
    strange.metadata = object(json!({"f": 1e-7, "big": 12_345_678_901_234_567_890_u64, "nul": "\u{0}"}));
    messages.push(Arc::new(strange));
    let draft = draft(None, messages);
    let bundle = fixture
        .publish(&Commit {
            run: Some(run_of(&draft)),
            draft,
            ..fixture.commit(None, &[])
        })
        .await;
    assert_eq!(fixture.load(bundle.head.session_id).await, *bundle);
}

async fn unchanged_states_are_not_written_again(fixture: Fixture) {
    let mut tip = fixture.root(&["0"]).await;
    assert_eq!(fixture.count("states").await, 2);
    for _ in 0..3 {
        tip = fixture.child(&tip, &["more"]).await;
    }
    assert_eq!(fixture.count("states").await, 2);
    let mut commit = fixture.commit(Some(&tip), &["changed"]);
    commit.draft.environment = Arc::new(EnvironmentState {
        variables: [("city".to_owned(), json!("Bern"))].into(),
        ..EnvironmentState::default()
    });
    let changed = fixture.publish(&commit).await;
    assert_eq!(fixture.count("states").await, 3);
    assert_eq!(fixture.load(changed.head.session_id).await, *changed);
    // Back to what an ancestor had: its row serves again.
    let mut commit = fixture.commit(Some(&changed), &["back"]);
    commit.draft.environment = Arc::clone(&tip.environment);
    let back = fixture.publish(&commit).await;
    assert_eq!(fixture.count("states").await, 3);
    assert_eq!(back.head.environment_hash, tip.head.environment_hash);
    assert_eq!(fixture.load(back.head.session_id).await, *back);
}

async fn a_fork_writes_one_branch_and_its_own_messages(fixture: Fixture) {
    let root = fixture.root(&["one"]).await;
    let mut tip = Arc::clone(&root);
    for _ in 0..20 {
        tip = fixture.child(&tip, &["more"]).await;
    }
    assert_eq!(fixture.counts(["history_branches", "history_segments"]).await, [1, 21]);
    let fork = fixture.child(&root, &["else"]).await;
    assert_eq!(fixture.counts(["history_branches", "history_segments"]).await, [2, 22]);
    assert_eq!(fork.head.position.position, 0);
    assert_eq!(fixture.load(fork.head.session_id).await, *fork);
    assert_eq!(fork.history.len(), 2);
}

async fn a_line_of_two_thousand_turns_loads_whole(fixture: Fixture) {
    let mut tip = fixture.root(&["0"]).await;
    let mut middle = Arc::clone(&tip);
    for turn in 1..2000 {
        tip = fixture.child(&tip, &[&turn.to_string()]).await;
        if turn == 1000 {
            middle = Arc::clone(&tip);
        }
    }
    assert_eq!(fixture.count("history_branches").await, 1);
    let fork = fixture.child(&middle, &["fork"]).await;
    for bundle in [&tip, &middle, &fork] {
        assert_eq!(fixture.load(bundle.head.session_id).await, **bundle);
    }
    let report = fixture.verify(tip.head.session_id).await;
    assert_eq!((report.sessions, report.messages, report.faults), (2000, 2000, vec![]));
}

async fn forks_of_forks_share_nothing_after_their_base(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let mut base = Arc::clone(&root);
    let mut all = vec![Arc::clone(&root)];
    for level in 0..12 {
        let name = level.to_string();
        let straight = fixture.child(&base, &[&name, "straight"]).await;
        let fork = fixture.child(&base, &[&name, "fork"]).await;
        let wide = fixture.child(&base, &[&name, "wide"]).await;
        assert_ne!(fork.head.position.branch_id, wide.head.position.branch_id);
        all.extend([straight, fork, Arc::clone(&wide)]);
        base = wide;
    }
    for bundle in all {
        assert_eq!(fixture.load(bundle.head.session_id).await, *bundle);
    }
}

async fn a_history_that_no_provider_accepts_is_refused(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    for messages in [
        vec![call("a")],
        vec![result("a")],
        vec![call("a"), user("no"), result("a")],
    ] {
        let draft = draft(Some(&root), messages);
        let commit = Commit {
            run: Some(run_of(&draft)),
            draft,
            ..fixture.commit(None, &[])
        };
        let error = fixture.store.session_commit(&commit).await.unwrap_err();
        assert!(
            matches!(error, CommitError::Store(StoreError::Failed { .. })),
            "{error:?}"
        );
        let tables = ["sessions", "history_segments", "runs"];
        for table in tables {
            assert_eq!(fixture.count(table).await, 1, "{table}");
        }
    }
}

async fn a_history_must_continue_its_base(fixture: Fixture) {
    let root = fixture.root(&["root", "more"]).await;
    let mut commit = fixture.commit(Some(&root), &["next"]);
    commit.draft.history = [user("else"), user("else"), user("next")].into_iter().collect();
    assert!(fixture.store.session_commit(&commit).await.is_err());
    commit.draft.history = [user("short")].into_iter().collect();
    assert!(fixture.store.session_commit(&commit).await.is_err());
    let mut commit = fixture.commit(Some(&root), &["next"]);
    commit.draft.session_id = session_id();
    assert!(
        fixture.store.session_commit(&commit).await.is_err(),
        "the run names another session"
    );
    assert_eq!(fixture.count("sessions").await, 1);
}

async fn other_tenants_see_nothing(fixture: Fixture) {
    let bundle = fixture.root(&["secret"]).await;
    let (id, run_id) = (bundle.head.session_id, bundle.head.run_id.unwrap());
    let (store, other) = (&fixture.store, tenant("other"));
    assert_eq!(store.bundle_load(&other, id).await.unwrap(), None);
    assert_eq!(store.session_lookup(&other, id).await.unwrap(), None);
    assert_eq!(store.segment_list(&other, id, 0, 1).await.unwrap(), None);
    assert_eq!(store.message_list(&other, id, 0..1).await.unwrap(), None);
    assert_eq!(store.new_message_list(&other, id).await.unwrap(), None);
    assert_eq!(store.step_message_list(&other, id, [].into()).await.unwrap(), None);
    let none = store.step_message_list(&fixture.tenant, id, [].into()).await;
    assert_eq!(none.unwrap(), Some(Vec::new()));
    assert_eq!(store.session_verify(&other, id).await.unwrap(), None);
    let page = Page {
        before: None,
        limit: 10,
    };
    assert_eq!(store.session_lineage(&other, id, page).await.unwrap(), None);
    assert_eq!(
        store
            .session_list(&other, &SessionFilter::default(), page)
            .await
            .unwrap(),
        []
    );
    assert_eq!(store.run_lookup(&other, run_id).await.unwrap(), None);
    assert_eq!(store.run_lookup_by_session(&other, id).await.unwrap(), None);
    assert_eq!(store.step_list(&other, run_id).await.unwrap(), None);
    // The same ids may exist there, too, and stay apart.
    let mut commit = fixture.commit(None, &["mine"]);
    commit.draft.session_id = id;
    commit.draft.run_id = Some(run_id);
    commit.run = Some(run_of(&commit.draft));
    commit.tenant = other.clone();
    let mine = fixture.publish(&commit).await;
    assert_eq!(store.bundle_load(&other, id).await.unwrap().unwrap(), *mine);
    assert_eq!(fixture.load(id).await, *bundle);
}

async fn a_base_of_another_tenant_is_refused(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let commit = Commit {
        tenant: tenant("other"),
        ..fixture.commit(Some(&root), &["next"])
    };
    for conflict in [ConflictPolicy::Fork, ConflictPolicy::Reject] {
        let commit = Commit {
            conflict,
            ..commit.clone()
        };
        let error = fixture.store.session_commit(&commit).await.unwrap_err();
        assert!(matches!(error, CommitError::MissingBase), "{error:?}");
    }
    assert_eq!(fixture.count("history_segments").await, 1);
    assert_eq!(fixture.count("history_branches").await, 1);
}

async fn committed_rows_refuse_updates(fixture: Fixture) {
    fixture.root(&["root"]).await;
    for table in [
        "history_branches",
        "history_segments",
        "states",
        "sessions",
        "agent_versions",
    ] {
        if table == "agent_versions" {
            crate::sql::agents::put_one(&fixture).await;
        }
        let update = format!("update {table} set tenant = 'thief'");
        let error = fixture.database.execute(&update).await.unwrap_err();
        assert!(
            error.to_string().contains(&format!("rows of {table} are immutable")),
            "{error}"
        );
    }
}

async fn messages_are_read_by_index(fixture: Fixture) {
    let root = fixture.root(&["0", "1", "2"]).await;
    let child = fixture.child(&root, &["3", "4"]).await;
    fixture.child(&root, &["other"]).await;
    let fork = fixture.child(&root, &["5", "6", "7"]).await;
    for bundle in [&root, &child, &fork] {
        let all: Vec<_> = bundle.history.iter().cloned().collect();
        let id = bundle.head.session_id;
        let total = all.len() as u64;
        let list = async |from, limit| {
            let listed = fixture.store.segment_list(&fixture.tenant, id, from, limit).await;
            listed.unwrap().unwrap()
        };
        for from in 0..=all.len() {
            for end in from + 1..=all.len() {
                let indexes = from as u64..end as u64;
                let limit = u32::try_from(end - from).unwrap();
                let page = fixture.store.message_list(&fixture.tenant, id, indexes.clone()).await;
                assert_eq!(page.unwrap().unwrap(), all[from..end]);
                let listed = list(indexes.start, limit).await;
                let ends = listed.segments.first().zip(listed.segments.last());
                let around = ends.map(|(first, last)| first.first_index <= indexes.start && indexes.end <= last.end());
                assert_eq!((listed.total, around), (total, Some(true)), "{indexes:?}");
                for segment in listed.segments {
                    assert!(
                        segment.first_index < indexes.end && indexes.start < segment.end(),
                        "{segment:?}"
                    );
                }
            }
        }
        for from in [total, total + 1, u64::MAX] {
            let listed = list(from, u32::MAX).await;
            assert_eq!((listed.segments, listed.total), (Vec::new(), total));
        }
    }
    let added = fixture
        .store
        .new_message_list(&fixture.tenant, fork.head.session_id)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(added, fork.history.iter_from(3).cloned().collect::<Vec<_>>());
    assert_eq!(
        fixture
            .store
            .new_message_list(&fixture.tenant, session_id())
            .await
            .unwrap(),
        None
    );
}
