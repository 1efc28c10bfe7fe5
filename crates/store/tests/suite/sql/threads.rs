//! Threads point to sessions, and move only from where they are expected to be.

use std::sync::Arc;

use agent::record::{ThreadName, ThreadRecord};
use store::queue::IfBusy;
use store::sessions::{Commit, SessionFilter, ThreadMove};
use store::threads::{ThreadDelete, ThreadExpectation, ThreadFilter, ThreadPage, ThreadPut};
use store::{CommitError, Page};
use test_support::drafts::{now, session_id, tenant};
use values::ids::SessionId;
use values::json::Object;
use values::session::Bundle;

use super::queue::fixtures::{commit_of, thread_run};
use crate::fixtures::Fixture;

on_both_engines!(
    a_thread_moves_and_counts_its_moves,
    a_thread_moves_only_from_where_it_is_expected,
    a_thread_points_to_sessions_of_its_own_tenant_only,
    a_thread_that_never_pointed_anywhere_can_be_moved_from_there,
    of_rivals_that_move_a_thread_one_wins,
    threads_list_by_name_within_their_tenant,
    a_thread_counts_the_runs_that_moved_it,
    a_change_without_a_run_moves_a_thread_from_its_base_only,
    a_change_without_a_run_need_not_continue_what_the_thread_points_to,
    changes_of_one_base_at_the_same_time_move_a_thread_once,
    a_deleted_thread_leaves_its_sessions,
);

fn name(text: &str) -> ThreadName {
    text.parse().unwrap()
}

async fn put(fixture: &Fixture, text: &str, to: SessionId, expected: ThreadExpectation) -> ThreadPut {
    let thread = name(text);
    let put = fixture.store.thread_put(&fixture.tenant, &thread, to, expected, now());
    put.await.unwrap()
}

async fn lookup(fixture: &Fixture, text: &str) -> Option<ThreadRecord> {
    let found = fixture.store.thread_lookup(&fixture.tenant, &name(text)).await;
    found.unwrap()
}

async fn a_thread_moves_and_counts_its_moves(fixture: Fixture) {
    assert_eq!(lookup(&fixture, "t").await, None);
    let (root, other) = (fixture.root(&["root"]).await, fixture.root(&["other"]).await);
    let (first, second) = (root.head.session_id, other.head.session_id);
    let times = [now(), now()];
    let mut thread = ThreadRecord {
        name: name("t"),
        title: None,
        metadata: Object::new(),
        session_id: Some(first),
        agent: Some("demo".to_owned()),
        message_count: 1,
        run_count: 0,
        version: 1,
        created_at: times[0],
        updated_at: times[0],
    };
    for (to, time) in [(first, times[0]), (second, times[1]), (second, times[1])] {
        let moved = fixture
            .store
            .thread_put(&fixture.tenant, &name("t"), to, ThreadExpectation::Anything, time)
            .await;
        thread.session_id = Some(to);
        thread.updated_at = time;
        assert_eq!(moved.unwrap(), ThreadPut::Moved(thread.clone()));
        assert_eq!(lookup(&fixture, "t").await, Some(thread.clone()));
        thread.version += 1;
    }
}

async fn a_thread_moves_only_from_where_it_is_expected(fixture: Fixture) {
    let (root, other) = (fixture.root(&["root"]).await, fixture.root(&["other"]).await);
    let (first, second) = (root.head.session_id, other.head.session_id);
    for expected in [ThreadExpectation::At(None), ThreadExpectation::At(Some(first))] {
        let answer = put(&fixture, "t", first, expected).await;
        assert_eq!(answer, ThreadPut::Unexpected(None), "{expected:?}");
    }
    let made = put(&fixture, "t", first, ThreadExpectation::Absent).await;
    let ThreadPut::Moved(thread) = made else {
        panic!("{made:?}")
    };
    for expected in [
        ThreadExpectation::Absent,
        ThreadExpectation::At(None),
        ThreadExpectation::At(Some(second)),
    ] {
        let answer = put(&fixture, "t", second, expected).await;
        assert_eq!(answer, ThreadPut::Unexpected(Some(thread.clone())), "{expected:?}");
        assert_eq!(lookup(&fixture, "t").await, Some(thread.clone()));
    }
    let moved = put(&fixture, "t", second, ThreadExpectation::At(Some(first))).await;
    assert!(
        matches!(&moved, ThreadPut::Moved(thread) if thread.session_id == Some(second) && thread.version == 2),
        "{moved:?}"
    );
}

async fn a_thread_points_to_sessions_of_its_own_tenant_only(fixture: Fixture) {
    let root = fixture.root(&["root"]).await.head.session_id;
    put(&fixture, "t", root, ThreadExpectation::Anything).await;
    for expected in [
        ThreadExpectation::Anything,
        ThreadExpectation::Absent,
        ThreadExpectation::At(Some(root)),
    ] {
        assert_eq!(
            put(&fixture, "t", session_id(), expected).await,
            ThreadPut::NoSession,
            "{expected:?}"
        );
    }
    let foreign = tenant("other");
    let stolen = fixture
        .store
        .thread_put(&foreign, &name("t"), root, ThreadExpectation::Anything, now())
        .await;
    assert_eq!(stolen.unwrap(), ThreadPut::NoSession);
    assert_eq!(fixture.count("threads").await, 1);
}

async fn a_thread_that_never_pointed_anywhere_can_be_moved_from_there(fixture: Fixture) {
    let root = fixture.root(&["root"]).await.head.session_id;
    put(&fixture, "t", root, ThreadExpectation::Anything).await;
    fixture
        .execute("update threads set session_id = null, version = 0")
        .await;
    assert_eq!(lookup(&fixture, "t").await.unwrap().session_id, None);
    let moved = put(&fixture, "t", root, ThreadExpectation::At(None)).await;
    assert!(
        matches!(&moved, ThreadPut::Moved(thread) if thread.session_id == Some(root) && thread.version == 1),
        "{moved:?}"
    );
}

async fn of_rivals_that_move_a_thread_one_wins(fixture: Fixture) {
    let root = fixture.root(&["root"]).await.head.session_id;
    let mut rivals = Vec::new();
    for _ in 0..8 {
        rivals.push(fixture.root(&["rival"]).await.head.session_id);
    }
    let mut from = ThreadExpectation::Absent;
    for round in 1..=4 {
        let racing = rivals.iter().map(|rival| put(&fixture, "t", *rival, from));
        let answers = futures_util::future::join_all(racing).await;
        let winners: Vec<_> = answers
            .iter()
            .filter_map(|answer| match answer {
                ThreadPut::Moved(thread) => Some(thread.clone()),
                ThreadPut::Unexpected(_) => None,
                ThreadPut::NoSession | ThreadPut::Busy(_) => panic!("{answers:?}"),
            })
            .collect();
        let [winner] = &winners[..] else { panic!("{winners:?}") };
        assert_eq!(winner.version, 2 * round - 1);
        assert_eq!(lookup(&fixture, "t").await.as_ref(), Some(winner));
        // Everybody begins the next round from the same place again.
        put(&fixture, "t", root, ThreadExpectation::At(winner.session_id)).await;
        from = ThreadExpectation::At(Some(root));
    }
}

async fn list(fixture: &Fixture, page: &ThreadPage) -> Vec<ThreadRecord> {
    let all = ThreadFilter::default();
    fixture.store.thread_list(&fixture.tenant, &all, page).await.unwrap()
}

async fn threads_list_by_name_within_their_tenant(fixture: Fixture) {
    let root = fixture.root(&["root"]).await.head.session_id;
    let names = ["-", "B", "a", "a-b", "a.b", "a:b", "a@b", "a_b", "b"];
    for text in names.iter().rev() {
        put(&fixture, text, root, ThreadExpectation::Absent).await;
    }
    let mut page = ThreadPage { after: None, limit: 4 };
    let mut seen = Vec::new();
    loop {
        let threads = list(&fixture, &page).await;
        assert!(threads.len() <= 4);
        let Some(last) = threads.last() else { break };
        page.after = Some(last.name.clone());
        seen.extend(threads.iter().map(|thread| thread.name.to_string()));
    }
    assert_eq!(seen, names);
    let all = ThreadPage { after: None, limit: 9 };
    let (other, filter) = (tenant("other"), ThreadFilter::default());
    assert_eq!(fixture.store.thread_list(&other, &filter, &all).await.unwrap(), []);
}

async fn a_thread_counts_the_runs_that_moved_it(fixture: Fixture) {
    for count in 1..=2 {
        fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Reject)).await;
        let leased = fixture.lease_one().await;
        let commit = commit_of(&fixture, &leased);
        let session = fixture.publish(&commit).await;
        // A repeated attempt counts nothing.
        fixture.publish(&commit).await;
        let thread = lookup(&fixture, "t").await.unwrap();
        assert_eq!((thread.run_count, thread.version), (count, count));
        assert_eq!(thread.message_count, 2);
        assert_eq!(session.head.thread.as_deref(), Some("t"));
    }
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Fork)).await;
    let fork = fixture.lease_one().await;
    let forked = fixture.publish(&commit_of(&fixture, &fork)).await;
    assert_eq!(forked.head.thread.as_deref(), Some("t"));
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Reject)).await;
    let failing = fixture.lease_one().await;
    fixture.fail(&failing).await;
    let thread = lookup(&fixture, "t").await.unwrap();
    assert_eq!((thread.run_count, thread.version), (2, 2));
}

/// A change of a session without a run, which moves the thread `t`.
fn change(fixture: &Fixture, base: &Arc<Bundle>) -> Commit {
    changed(fixture, Some(base), Some(base.head.session_id))
}

/// A session without a run, which moves the thread `t` from another one.
fn changed(fixture: &Fixture, parent: Option<&Arc<Bundle>>, from: Option<SessionId>) -> Commit {
    let mut commit = fixture.commit(parent, &[]);
    commit.draft.run_id = None;
    Commit {
        run: None,
        thread: Some(ThreadMove { name: name("t"), from }),
        ..commit
    }
}

async fn a_change_without_a_run_moves_a_thread_from_its_base_only(fixture: Fixture) {
    let store = &fixture.store;
    let root = fixture.root(&["root"]).await;
    let absent = store.session_commit(&change(&fixture, &root)).await;
    assert!(matches!(absent, Err(CommitError::ThreadMoved { .. })), "{absent:?}");
    put(&fixture, "t", root.head.session_id, ThreadExpectation::Absent).await;
    let commit = change(&fixture, &root);
    let child = fixture.publish(&commit).await;
    assert_eq!(
        fixture.publish(&commit).await,
        child,
        "a repeated attempt has the same result"
    );
    assert_eq!(child.head.thread.as_deref(), Some("t"));
    assert_eq!(fixture.load(child.head.session_id).await.head, child.head);
    let thread = lookup(&fixture, "t").await.unwrap();
    assert_eq!(thread.session_id, Some(child.head.session_id));
    assert_eq!((thread.run_count, thread.version), (0, 2));
    let stale = store.session_commit(&change(&fixture, &root)).await;
    assert!(
        matches!(&stale, Err(CommitError::ThreadMoved { name }) if name.as_str() == "t"),
        "{stale:?}"
    );
    let run = thread_run(&fixture.tenant, "t", IfBusy::Reject);
    fixture.enqueue(&run).await;
    let busy = store.session_commit(&change(&fixture, &child)).await;
    let active = run.summary.run_id;
    assert!(
        matches!(&busy, Err(CommitError::ThreadBusy { run_id, .. }) if *run_id == active),
        "{busy:?}"
    );
    assert_eq!(lookup(&fixture, "t").await, Some(thread));
    assert_eq!(fixture.count("sessions").await, 2);
    let filter = SessionFilter {
        thread: Some(name("t")),
        ..SessionFilter::default()
    };
    let page = Page { before: None, limit: 9 };
    let listed = store.session_list(&fixture.tenant, &filter, page).await.unwrap();
    assert_eq!(listed, std::slice::from_ref(&child.head));
}

async fn a_change_without_a_run_need_not_continue_what_the_thread_points_to(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let child = fixture.child(&root, &["child"]).await;
    put(&fixture, "t", root.head.session_id, ThreadExpectation::Absent).await;
    fixture
        .execute("update threads set session_id = null, version = 0")
        .await;
    let early = fixture.store.session_commit(&change(&fixture, &child)).await;
    assert!(matches!(early, Err(CommitError::ThreadMoved { .. })), "{early:?}");
    let first = fixture.publish(&changed(&fixture, None, None)).await;
    assert_eq!(
        lookup(&fixture, "t").await.unwrap().session_id,
        Some(first.head.session_id)
    );
    put(&fixture, "t", child.head.session_id, ThreadExpectation::Anything).await;
    let other = changed(&fixture, Some(&root), Some(child.head.session_id));
    let other = fixture.publish(&other).await;
    assert_eq!(other.head.parent_session_id, Some(root.head.session_id));
    let thread = lookup(&fixture, "t").await.unwrap();
    assert_eq!((thread.session_id, thread.version), (Some(other.head.session_id), 3));
}

async fn changes_of_one_base_at_the_same_time_move_a_thread_once(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    put(&fixture, "t", root.head.session_id, ThreadExpectation::Absent).await;
    let changes: Vec<_> = (0..8).map(|_| change(&fixture, &root)).collect();
    let committing = changes.iter().map(|commit| fixture.store.session_commit(commit));
    let answers = futures_util::future::join_all(committing).await;
    let published: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().ok()).collect();
    let [winner] = &published[..] else {
        panic!("{answers:?}")
    };
    let moved = |answer: &Result<_, CommitError>| matches!(answer, Ok(_) | Err(CommitError::ThreadMoved { .. }));
    assert!(answers.iter().all(moved), "{answers:?}");
    let thread = lookup(&fixture, "t").await.unwrap();
    assert_eq!(thread.session_id, Some(winner.session.head.session_id));
    assert_eq!(fixture.count("sessions").await, 2);
}

async fn a_deleted_thread_leaves_its_sessions(fixture: Fixture) {
    let root = fixture.root(&["root"]).await.head.session_id;
    put(&fixture, "t", root, ThreadExpectation::Anything).await;
    let thread = name("t");
    for (of, deleted) in [
        (&tenant("other"), ThreadDelete::Absent),
        (&fixture.tenant, ThreadDelete::Deleted),
        (&fixture.tenant, ThreadDelete::Absent),
    ] {
        assert_eq!(fixture.store.thread_delete(of, &thread).await.unwrap(), deleted);
    }
    assert_eq!(lookup(&fixture, "t").await, None);
    assert_eq!(fixture.load(root).await.head.session_id, root);
    let again = put(&fixture, "t", root, ThreadExpectation::Absent).await;
    assert!(
        matches!(&again, ThreadPut::Moved(thread) if thread.version == 1),
        "{again:?}"
    );
}
