//! Removals that a caller requests: what is refused, what is removed with the session, and what
//! stays for its descendants.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, join_all, select};
use futures_util::poll;
use store::retention::{Ancestor, SessionRemoval};
use store::sessions::{Commit, ConflictPolicy};
use store::threads::ThreadPut;
use store::{CommitError, Sessions};
use test_support::drafts::{now, requester, session_id, tenant};
use values::clock::SystemClock;

use super::rules::queue;
use super::{aged, older_than};
use crate::fixtures::{Fixture, postgres};
use crate::postgres::plans::rows_read_by;
use crate::sql::commit::subagents::{family, subagent};

on_both_engines!(
    a_session_is_removed_with_its_family_and_its_run,
    a_continued_session_is_removed_only_with_its_descendants,
    a_session_in_use_is_refused,
    sessions_of_others_are_not_found,
    a_removed_rival_is_a_conflict_as_long_as_it_is_continued,
    a_small_removal_goes_between_the_steps_of_a_large_one,
    a_thread_on_the_root_stops_a_removal_that_has_begun,
);

/// Sessions that go in five steps.
const LARGE: usize = 500;

async fn remove(fixture: &Fixture, id: values::ids::SessionId, descendants: bool) -> SessionRemoval {
    fixture
        .store
        .session_remove(&fixture.tenant, id, descendants, &requester())
        .await
        .unwrap()
}

async fn a_session_is_removed_with_its_family_and_its_run(fixture: Fixture) {
    let other = fixture.root(&["other"]).await;
    let before = [fixture.count("history_segments").await, fixture.count("states").await];
    let commit = family(&fixture, None);
    let committed = fixture.store.session_commit(&commit).await.unwrap();
    let SessionRemoval::Removed(figures) = remove(&fixture, commit.draft.session_id, false).await else {
        panic!("it stays")
    };
    assert_eq!((figures.sessions, figures.segments, figures.runs), (4, 4, 1));
    assert!(figures.bytes > 0);
    for bundle in std::iter::once(&committed.session).chain(&committed.children) {
        let id = bundle.head.session_id;
        assert_eq!(fixture.head(id).await, None);
        assert_eq!(fixture.store.session_verify(&fixture.tenant, id).await.unwrap(), None);
        assert_eq!(
            fixture.store.segment_list(&fixture.tenant, id, 0, 9).await.unwrap(),
            None
        );
        assert_eq!(
            fixture.store.message_list(&fixture.tenant, id, 0..1).await.unwrap(),
            None
        );
    }
    let run_id = commit.draft.run_id.unwrap();
    assert_eq!(fixture.run(run_id).await, None);
    assert_eq!(
        remove(&fixture, commit.draft.session_id, false).await,
        SessionRemoval::NotFound
    );
    fixture.assert_whole(&other, 1).await;
    let after = [fixture.count("history_segments").await, fixture.count("states").await];
    assert_eq!(before, after);
}

async fn a_continued_session_is_removed_only_with_its_descendants(fixture: Fixture) {
    let root = fixture.publish(&aged(fixture.commit(None, &["root"]), now(), 9)).await;
    let middle = fixture
        .publish(&aged(fixture.commit(Some(&root), &["middle"]), now(), 5))
        .await;
    let tip = fixture.child(&middle, &["tip"]).await;
    // One that continues the session of a subagent hangs on the subagent's starter, too.
    let mut commit = fixture.commit(Some(&root), &["run"]);
    let child = subagent(&commit, commit.draft.session_id, None, &["task"]);
    commit.children = vec![child];
    let starter = fixture.store.session_commit(&commit).await.unwrap();
    let of_child = fixture
        .child(&std::sync::Arc::new(starter.children[0].clone()), &["more"])
        .await;
    let starter_id = starter.session.head.session_id;
    assert_eq!(
        remove(&fixture, starter_id, false).await,
        SessionRemoval::HasDescendants
    );

    // The middle is removed by its age: what continues it hangs on the root all the same.
    let root_id = root.head.session_id;
    let name = "main".parse().unwrap();
    fixture.move_thread(&name, root_id).await;
    assert_eq!(fixture.sweep(older_than(3), now(), 10).await.sessions, 1);
    fixture.store.thread_delete(&fixture.tenant, &name).await.unwrap();
    assert_eq!(
        fixture.line(tip.head.session_id).await,
        [
            (tip.head.session_id, true),
            (middle.head.session_id, false),
            (root_id, true)
        ]
    );
    fixture.assert_whole(&tip, 3).await;
    let added_by = async |index| {
        let id = tip.head.session_id;
        let found = fixture.store.session_lookup_by_message(&fixture.tenant, id, index);
        found.await.unwrap()
    };
    assert_eq!(added_by(0).await, Some(Ancestor::Retained(root.head.clone())));
    let removed = added_by(1).await;
    assert!(
        matches!(removed, Some(Ancestor::Removed(removed)) if removed.session_id == middle.head.session_id),
        "{removed:?}"
    );
    assert_eq!(added_by(2).await, Some(Ancestor::Retained(tip.head.clone())));
    assert_eq!(added_by(3).await, None);
    assert_eq!(
        remove(&fixture, middle.head.session_id, true).await,
        SessionRemoval::NotFound
    );
    assert_eq!(remove(&fixture, root_id, false).await, SessionRemoval::HasDescendants);
    fixture.assert_whole(&of_child, 2).await;

    let SessionRemoval::Removed(figures) = remove(&fixture, root_id, true).await else {
        panic!("it stays")
    };
    assert_eq!((figures.sessions, figures.segments), (5, 6));
    for table in [
        "sessions",
        "removed_sessions",
        "history_segments",
        "history_branches",
        "states",
        "runs",
    ] {
        assert_eq!(fixture.count(table).await, 0, "{table}");
    }
}

async fn a_session_in_use_is_refused(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let tip = fixture.child(&root, &["tip"]).await;
    let (root_id, tip_id) = (root.head.session_id, tip.head.session_id);
    let name = "main".parse().unwrap();
    fixture.move_thread(&name, tip_id).await;
    for (id, descendants) in [(tip_id, false), (tip_id, true), (root_id, true)] {
        assert_eq!(remove(&fixture, id, descendants).await, SessionRemoval::InUse);
    }
    fixture.store.thread_delete(&fixture.tenant, &name).await.unwrap();
    let run = queue(&fixture, Some(tip_id)).await;
    assert_eq!(remove(&fixture, tip_id, false).await, SessionRemoval::InUse);
    assert_eq!(remove(&fixture, root_id, true).await, SessionRemoval::InUse);
    let leave = format!("delete from run_queue where run_id = {run}");
    fixture.execute(&leave).await;
    assert!(matches!(
        remove(&fixture, root_id, true).await,
        SessionRemoval::Removed(_)
    ));
}

async fn sessions_of_others_are_not_found(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let other = tenant("other");
    let removal = fixture
        .store
        .session_remove(&other, root.head.session_id, true, &requester())
        .await;
    assert_eq!(removal.unwrap(), SessionRemoval::NotFound);
    assert_eq!(remove(&fixture, session_id(), false).await, SessionRemoval::NotFound);
    fixture.assert_whole(&root, 1).await;
}

async fn a_removed_rival_is_a_conflict_as_long_as_it_is_continued(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let rival = fixture
        .publish(&aged(fixture.commit(Some(&root), &["rival"]), now(), 9))
        .await;
    let tip = fixture.child(&rival, &["tip"]).await;
    assert_eq!(fixture.sweep(older_than(5), now(), 10).await.sessions, 1);
    let mut late = fixture.commit(Some(&root), &["late"]);
    late.conflict = ConflictPolicy::Reject;
    let refused = fixture.store.session_commit(&late).await;
    assert!(
        matches!(refused, Err(CommitError::Conflict { run_id: None })),
        "{refused:?}"
    );
    remove(&fixture, tip.head.session_id, false).await;
    let published = fixture.publish(&late).await;
    assert_eq!(published.head.position, rival.head.position);
    fixture.assert_whole(&published, 2).await;
}

async fn a_small_removal_goes_between_the_steps_of_a_large_one(fixture: Fixture) {
    let mut attempts = 0;
    // On a busy machine, the large one may end while the small one is held up. One that waits for
    // it never ends first.
    while !ends_before_a_large_one(&fixture).await {
        attempts += 1;
        assert!(attempts < 10, "the small removal waits for the large one");
    }
}

/// Removes a session during a large removal of another tenant. Returns whether the large one had
/// not ended then.
async fn ends_before_a_large_one(fixture: &Fixture) -> bool {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 0, Arc::new(SystemClock));
    let root = fixture.root(&["root"]).await;
    join_all((1..LARGE).map(|_| fixture.child(&root, &["child"]))).await;
    let other = tenant("other");
    let commit = Commit {
        tenant: other.clone(),
        ..fixture.commit(None, &["root"])
    };
    let small = fixture.publish(&commit).await;
    let left = async |of: &str| fixture.count(&format!("sessions where tenant = '{of}'")).await;
    let remove = async |of, id| {
        let turn = sessions.removal_turn(of).await;
        sessions.remove(turn, of, id, true, &requester()).await.unwrap()
    };

    // It goes on when it is polled and at no other time.
    let mut large = pin!(remove(&fixture.tenant, root.head.session_id));
    let all = left(fixture.tenant.as_str()).await;
    while left(fixture.tenant.as_str()).await == all {
        assert!(poll!(large.as_mut()).is_pending(), "it goes in one step");
    }
    let small = pin!(remove(&other, small.head.session_id));
    let (small, large, is_before) = match select(small, large.as_mut()).await {
        Either::Left((small, large)) => (small, large.await, true),
        Either::Right((large, small)) => (small.await, large, false),
    };
    assert!(matches!(small, SessionRemoval::Removed(_)), "{small:?}");
    assert_eq!(left("other").await, 0);
    let SessionRemoval::Removed(figures) = large else {
        panic!("it stays")
    };
    assert_eq!(figures.sessions, LARGE as u64);
    assert_eq!(left(fixture.tenant.as_str()).await, 0);
    is_before
}

async fn a_thread_on_the_root_stops_a_removal_that_has_begun(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    join_all((1..LARGE).map(|_| fixture.child(&root, &["child"]))).await;
    let root_id = root.head.session_id;
    let all = fixture.count("sessions").await;
    let mut removal = pin!(remove(&fixture, root_id, true));
    while fixture.count("sessions").await == all {
        assert!(poll!(removal.as_mut()).is_pending(), "it goes in one step");
    }
    let name = "main".parse().unwrap();
    let put = fixture.move_thread(&name, root_id).await;
    assert!(matches!(put, ThreadPut::Moved(_)));
    assert_eq!(removal.await, SessionRemoval::InUse);
    // The first step, and the next where that had begun.
    let left = fixture.count("sessions").await;
    assert!(left >= all - 200, "{left} are left");
    fixture.assert_whole(&root, 1).await;
}

/// Continues the only session by a line of others, each with a segment of its own.
const LONG_LINE: &str = "with line as (
        insert into sessions
        select copy.* from generate_series(1, 6000) number, sessions root,
            lateral jsonb_populate_record(root, jsonb_build_object(
                'session_id', md5('session' || number), 'run_id', null, 'depth', number, 'position', number,
                'parent_session_id', case number when 1 then root.session_id::text else md5('session' || number - 1) end)) copy
        returning 1)
    insert into history_segments
    select copy.* from generate_series(1, 6000) number, history_segments root,
        lateral jsonb_populate_record(root, jsonb_build_object('position', number)) copy";

/// Removes a line of 6,001 sessions; returns how many rows of sessions, and how many entries of
/// removed sessions, were read.
async fn read_by_a_large_removal(fixture: &Fixture) -> (i64, i64) {
    let root = fixture.root(&["root"]).await.head.session_id;
    fixture.execute(LONG_LINE).await;
    let rows = rows_read_by(fixture, 8, "'sessions'", async |store| {
        let removal = store
            .session_remove(&fixture.tenant, root, true, &requester())
            .await
            .unwrap();
        let SessionRemoval::Removed(figures) = removal else {
            panic!("{removal:?}")
        };
        assert_eq!((figures.sessions, figures.segments), (6001, 6001));
    })
    .await;
    let entries = "select sum(idx_tup_read)::bigint from pg_stat_user_indexes where relname = 'removed_sessions'";
    (rows, fixture.database.number(entries).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_removal_does_not_read_its_tree_for_each_step() {
    // While a transaction of any test is open for long, the server marks no entry as dead, and
    // all of them are read over and over.
    const TRIES: usize = 5;
    let mut entries = Vec::new();
    for _ in 0..TRIES {
        let Some(fixture) = postgres().await else { return };
        let (rows, read) = read_by_a_large_removal(&fixture).await;
        // Some 10 for each session.
        assert!(rows < 30 * 6001, "{rows} rows of sessions were read");
        // Some 20, entries of what is gone among them.
        if read < 30 * 6001 {
            return;
        }
        entries.push(read);
    }
    panic!("{entries:?} entries of removed sessions were read");
}
