//! Removals on PostgreSQL beside open transactions of commits and other removals: a transaction
//! waits only for the session that it needs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::future::join_all;
use store::queue::Acceptance;
use store::retention::SessionRemoval;
use store::sessions::Commit;
use store::threads::{ThreadExpectation, ThreadPut};
use store::{CommitError, Sessions};
use test_support::drafts::{now, requester};
use test_support::logs::listen;
use test_support::statements::Statements;
use test_support::wait::until;
use tracing_subscriber::layer::SubscriberExt as _;
use values::clock::SystemClock;
use values::session::Bundle;

use super::races::run_from;
use super::{KEEP_ALL, aged, older_than};
use crate::fixtures::{Fixture, postgres};
use crate::postgres::held::{Held, until_waiting};
use crate::sql::commit::subagents::family;

/// More removals than there are connections.
const MANY: usize = 12;

/// A removal that waits for a transaction which the test holds fails: the store bounds each
/// statement.
pub(crate) async fn remove(fixture: &Fixture, bundle: &Bundle) -> SessionRemoval {
    let id = bundle.head.session_id;
    fixture.remove(id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_needs_a_session_waits_for_its_removal() {
    let Some(fixture) = postgres().await else { return };
    let [going, other] = [fixture.root(&["going"]).await, fixture.root(&["other"]).await];
    let removing = Held::removing(&fixture, &going).await;

    // All of this would stand still behind a lock on more than the session.
    let beside = async {
        let next = fixture.child(&other, &["next"]).await;
        fixture.root(&["root"]).await;
        let run = run_from(&fixture, &next, "beside");
        let enqueued = fixture.store.run_accept(&run).await.unwrap();
        assert!(matches!(enqueued, Acceptance::Accepted { .. }), "{enqueued:?}");
        let name = "beside".parse().unwrap();
        let id = other.head.session_id;
        let put = fixture.move_thread(&name, id).await;
        assert!(matches!(put, ThreadPut::Moved(_)));
        let third = fixture.root(&["third"]).await;
        assert!(matches!(remove(&fixture, &third).await, SessionRemoval::Removed(_)));
    };
    beside.await;

    let run = run_from(&fixture, &going, "a");
    let commit = fixture.commit(Some(&going), &["next"]);
    let mut borrowing = fixture.commit(Some(&other), &["with its files"]);
    borrowing.environment_from = Some(going.head.session_id);
    let name = "gone".parse().unwrap();
    let (enqueued, committed, borrowed, put, ()) = tokio::join!(
        fixture.store.run_accept(&run),
        fixture.store.session_commit(&commit),
        fixture.store.session_commit(&borrowing),
        fixture.store.thread_put(
            &fixture.tenant,
            &name,
            going.head.session_id,
            ThreadExpectation::Anything,
            now()
        ),
        async {
            until_waiting(&fixture, 4).await;
            removing.end("commit").await;
        }
    );
    assert_eq!(enqueued.unwrap(), Acceptance::MissingBase(going.head.session_id));
    assert!(matches!(committed.unwrap_err(), CommitError::MissingBase));
    assert!(matches!(borrowed.unwrap_err(), CommitError::MissingEnvironment));
    assert_eq!(put.unwrap(), ThreadPut::NoSession);
    for table in ["run_queue", "idempotency_keys", "threads"] {
        assert_eq!(fixture.count(table).await, 1, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_skips_what_a_commit_in_flight_continues() {
    let Some(fixture) = postgres().await else { return };
    let mut old = Vec::new();
    for text in ["a", "b"] {
        old.push(fixture.publish(&aged(fixture.commit(None, &[text]), now(), 9)).await);
    }
    let committed = fixture
        .store
        .session_commit(&aged(family(&fixture, None), now(), 9))
        .await
        .unwrap();
    let starter = Arc::new(committed.session);
    let continuing = Held::continuing(&fixture, &committed.children[0]).await;

    // A family is removed as a whole or stays as a whole; a session that was named is reported as
    // in use.
    let swept = fixture.sweep(older_than(3), now(), 10).await;
    assert_eq!(swept.sessions, 2);
    assert_eq!(remove(&fixture, &starter).await, SessionRemoval::InUse);
    assert_eq!(fixture.count("sessions").await, 4);
    fixture.assert_whole(&starter, 1).await;

    // It waits for one that is about to end: it has looked again when that ends.
    let statements = Statements::default();
    let _listening = listen(tracing_subscriber::registry().with(statements.clone()));
    let reads = AtomicUsize::new(0);
    let (removal, ()) = tokio::join!(remove(&fixture, &starter), async {
        until("the removal does not look again", async || {
            reads.fetch_add(statements.taken(), Ordering::SeqCst) > 1
        })
        .await;
        continuing.end("rollback").await;
    });
    assert!(matches!(removal, SessionRemoval::Removed(_)), "{removal:?}");
    for table in [
        "sessions",
        "removed_sessions",
        "unused_states",
        "history_segments",
        "states",
    ] {
        assert_eq!(fixture.count(table).await, 0, "{table}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removal_of_a_tree_that_keeps_changing_gives_up() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let shared = fixture.child(&root, &["shared"]).await;
    let continuing = Held::continuing(&fixture, &shared).await;
    let tip = fixture.child(&root, &["tip"]).await;

    let walks = Statements::of(&["with recursive tree"]);
    let _listening = listen(tracing_subscriber::registry().with(walks.clone()));
    let by = requester();
    let removing = fixture
        .store
        .session_remove(&fixture.tenant, root.head.session_id, true, &by);
    let seen = AtomicUsize::new(0);
    let reads = || {
        seen.fetch_add(walks.taken(), Ordering::SeqCst);
        seen.load(Ordering::SeqCst)
    };
    let continuing_the_tip = async {
        let mut tip = tip;
        for _ in 0..80 {
            tip = fixture.child(&tip, &["next"]).await;
            let before = reads();
            until("the removal does not look again", async || reads() > before).await;
        }
        std::future::pending::<()>().await;
    };
    let removal = tokio::select! {
        removal = removing => removal.unwrap(),
        () = continuing_the_tip => unreachable!("it goes on for ever"),
    };
    assert_eq!(removal, SessionRemoval::InUse);
    // A walk for each pause of a hundredth of a second, of two statements.
    let reads = reads();
    assert!((100..=210).contains(&reads), "{reads}");
    continuing.end("rollback").await;
    fixture.assert_whole(&root, 1).await;
    fixture.assert_whole(&shared, 2).await;
}

/// The row of the session's environment, in SQL.
fn environment_of(fixture: &Fixture, bundle: &Bundle) -> String {
    let hash = bundle.head.environment_hash;
    format!(
        "states where tenant = '{}' and hash = decode('{hash}', 'hex')",
        fixture.tenant
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenant_waits_for_no_removal() {
    let Some(fixture) = postgres().await else { return };
    let sessions = Arc::new(Sessions::new(Arc::clone(&fixture.store), 0, Arc::new(SystemClock)));
    let roots = join_all((0..MANY).map(|_| fixture.root(&["root"]))).await;
    // A removal in its midst: it holds the states, and others wait for their turn.
    let held = format!(
        "select 1 from removal_turn for update; select 1 from {} for update",
        environment_of(&fixture, &roots[0])
    );
    let held = Held::begin(&fixture, &held).await;
    let removals = roots.into_iter().map(|root| {
        let (sessions, tenant) = (Arc::clone(&sessions), fixture.tenant.clone());
        tokio::spawn(async move {
            let turn = sessions.removal_turn(&tenant).await;
            let removed = sessions
                .remove(turn, &tenant, root.head.session_id, false, &requester())
                .await;
            removed.unwrap()
        })
    });
    let removals: Vec<_> = removals.collect();
    until_waiting(&fixture, 1).await;
    for _ in 0..MANY {
        let commit = Commit {
            tenant: "other".parse().unwrap(),
            ..fixture.commit(None, &["root"])
        };
        fixture.store.session_commit(&commit).await.unwrap();
    }
    until_waiting(&fixture, 1).await;
    held.end("rollback").await;
    for removal in join_all(removals).await {
        let removal = removal.unwrap();
        assert!(matches!(removal, SessionRemoval::Removed(_)), "{removal:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_stays_while_a_commit_in_flight_may_use_it() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let using = format!("select 1 from {} for key share", environment_of(&fixture, &root));
    let using = Held::begin(&fixture, &using).await;
    assert!(matches!(remove(&fixture, &root).await, SessionRemoval::Removed(_)));
    assert_eq!(fixture.count("states").await, 1);
    // The commit fails: nothing has the state, and the next sweep finds that out.
    using.end("rollback").await;
    assert_eq!(fixture.sweep(KEEP_ALL, now(), 10).await.states, 1);
    for table in ["states", "unused_states"] {
        assert_eq!(fixture.count(table).await, 0, "{table}");
    }

    // A commit waits until the state's removal has ended, and stores it again.
    let root = fixture.root(&["root"]).await;
    let removing = format!(
        "delete from sessions where session_id = '{}'; delete from states",
        root.head.session_id
    );
    let removing = Held::begin(&fixture, &removing).await;
    let again = fixture.commit(None, &["again"]);
    let (committed, ()) = tokio::join!(fixture.store.session_commit(&again), async {
        until_waiting(&fixture, 1).await;
        removing.end("commit").await;
    });
    fixture.assert_whole(&committed.unwrap().session, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_another_commit_stores_meanwhile_is_locked() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let environment = environment_of(&fixture, &root);
    fixture
        .execute(&format!(
            "create table kept as select * from {environment}; delete from {environment}"
        ))
        .await;
    // The commit does not see the state, and meets it.
    let storing = Held::begin(&fixture, "insert into states select * from kept").await;
    let again = fixture.commit(None, &["again"]);
    let (committed, ()) = tokio::join!(fixture.store.session_commit(&again), async {
        until_waiting(&fixture, 1).await;
        storing.end("commit").await;
    });
    fixture.assert_whole(&committed.unwrap().session, 1).await;
    fixture.assert_whole(&root, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_remove_at_once() {
    let Some(fixture) = postgres().await else { return };
    let roots = join_all((0..16).map(|_| fixture.root(&["root"]))).await;
    for removal in join_all(roots.iter().map(|root| remove(&fixture, root))).await {
        assert!(matches!(removal, SessionRemoval::Removed(_)), "{removal:?}");
    }
    for table in ["sessions", "removed_sessions", "unused_states", "states"] {
        assert_eq!(fixture.count(table).await, 0, "{table}");
    }
}
