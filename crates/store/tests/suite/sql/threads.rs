//! Threads point to sessions, and move only from where they are expected to be.

use agent::record::{ThreadName, ThreadRecord};
use store::threads::{ThreadDelete, ThreadExpectation, ThreadPage, ThreadPut};
use test_support::drafts::{now, session_id, tenant};
use values::ids::SessionId;

use crate::fixtures::Fixture;

on_both_engines!(
    a_thread_moves_and_counts_its_moves,
    a_thread_moves_only_from_where_it_is_expected,
    a_thread_points_to_sessions_of_its_own_tenant_only,
    a_thread_that_never_pointed_anywhere_can_be_moved_from_there,
    of_rivals_that_move_a_thread_one_wins,
    threads_list_by_name_within_their_tenant,
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
        session_id: Some(first),
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

async fn threads_list_by_name_within_their_tenant(fixture: Fixture) {
    let root = fixture.root(&["root"]).await.head.session_id;
    let names = ["-", "B", "a", "a-b", "a.b", "a:b", "a@b", "a_b", "b"];
    for text in names.iter().rev() {
        put(&fixture, text, root, ThreadExpectation::Absent).await;
    }
    let mut page = ThreadPage { after: None, limit: 4 };
    let mut seen = Vec::new();
    loop {
        let threads = fixture.store.thread_list(&fixture.tenant, &page).await.unwrap();
        assert!(threads.len() <= 4);
        let Some(last) = threads.last() else { break };
        page.after = Some(last.name.clone());
        seen.extend(threads.iter().map(|thread| thread.name.to_string()));
    }
    assert_eq!(seen, names);
    let all = ThreadPage { after: None, limit: 9 };
    assert_eq!(fixture.store.thread_list(&tenant("other"), &all).await.unwrap(), []);
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
