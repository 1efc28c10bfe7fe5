//! Writes of a kind that are executed at once share a statement. What happens to one of them
//! happens to no other.

use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use store::sessions::{Commit, Committed, ConflictPolicy};
use store::{CommitError, Store, StoreSettings, open};
use test_support::databases::TestDatabase;
use test_support::drafts::{object, run_of};
use test_support::logs::{CapturedLog, listen};
use test_support::statements::Statements;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::Registry;
use values::ids::{BranchId, SessionId, UuidV7Source};
use values::session::{BranchPosition, Bundle, BundleDraft};

use super::held::{Held, until_waiting};
use crate::fixtures::{Fixture, postgres};
use crate::sql::queue::fixtures::commit_of;

/// Commits all at once. On one thread, the first is a batch of its own, and the others arrive
/// while it is in flight.
async fn commit_at_once(store: &dyn Store, commits: &[Commit]) -> Vec<Result<Committed, CommitError>> {
    join_all(commits.iter().map(|commit| store.session_commit(commit))).await
}

fn published(results: Vec<Result<Committed, CommitError>>) -> Vec<Bundle> {
    results.into_iter().map(|result| result.unwrap().session).collect()
}

async fn assert_stored(fixture: &Fixture, bundles: &[Bundle]) {
    for bundle in bundles {
        assert_eq!(fixture.load(bundle.head.session_id).await, *bundle);
    }
}

#[tokio::test(flavor = "current_thread")]
async fn sessions_that_commit_at_once_share_a_statement() {
    let Some(fixture) = postgres().await else { return };
    let parents = [fixture.root(&["one"]).await, fixture.root(&["two"]).await];
    let mut commits: Vec<_> = (0..20).map(|turn| fixture.commit(None, &[&turn.to_string()])).collect();
    commits.extend(parents.iter().map(|parent| fixture.commit(Some(parent), &["more"])));
    let other_tenant = test_support::drafts::tenant("other");
    commits.extend((0..3).map(|_| Commit {
        tenant: other_tenant.clone(),
        ..fixture.commit(None, &["of another tenant"])
    }));

    let statements = Statements::default();
    let listening = listen(Registry::default().with(statements.clone()));
    let mut bundles = published(commit_at_once(&*fixture.store, &commits).await);
    drop(listening);
    assert_eq!(statements.taken(), 2, "the first, and all others");
    for bundle in bundles.split_off(22) {
        let found = fixture.store.bundle_load(&other_tenant, bundle.head.session_id).await;
        assert_eq!(found.unwrap().unwrap(), bundle);
        let hidden = fixture.store.bundle_load(&fixture.tenant, bundle.head.session_id).await;
        assert_eq!(hidden.unwrap(), None);
    }
    assert_stored(&fixture, &bundles).await;
    assert_eq!(fixture.count("runs").await, 27);
}

#[tokio::test(flavor = "current_thread")]
async fn forks_that_commit_at_once_share_a_statement() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let own_branch = root.head.position.branch_id;
    let fork = |run: i32| fixture.commit(Some(&root), &[&run.to_string()]);
    let statements = Statements::default();
    for (first, is_free) in [(fixture.commit(None, &["another"]), true), (fork(0), false)] {
        let mut commits = vec![first];
        commits.extend((1..65).map(fork));
        let listening = listen(Registry::default().with(statements.clone()));
        let bundles = published(commit_at_once(&*fixture.store, &commits).await);
        drop(listening);
        // If the position is taken, the first of each statement tries it in vain, and forks in
        // another statement.
        assert_eq!(statements.taken(), if is_free { 2 } else { 4 }, "{is_free}");
        assert_stored(&fixture, &bundles).await;
        for (at, (bundle, commit)) in bundles.iter().zip(&commits).enumerate() {
            let appends = is_free && at == 1;
            let branch_id = if appends {
                own_branch
            } else {
                commit.draft.new_branch_id
            };
            let position = BranchPosition {
                branch_id,
                position: u64::from(appends),
            };
            assert_eq!(bundle.head.position, position, "{is_free}, {at}");
        }
    }
    let branches = "history_branches where parent_branch_id is not null and parent_position = 0";
    assert_eq!(fixture.count(branches).await, 63 + 65);
    assert_eq!(fixture.count("history_branches").await, 2 + 63 + 65);
    assert_eq!(fixture.count("history_segments").await, 1 + 2 * 65);
    assert_eq!(fixture.count("sessions").await, 1 + 2 * 65);
    assert_eq!(fixture.count("runs").await, 1 + 2 * 65);
}

/// As one by one: a worker that has lost its lease takes no position.
#[tokio::test(flavor = "current_thread")]
async fn the_first_that_may_takes_the_position_and_of_the_others_those_fork_that_may() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    fixture.enqueue_new().await;
    let mut leased = fixture.lease_one().await;
    leased.lease.fence += 1;
    let mut lost = commit_of(&fixture, &leased);
    let child = fixture.commit(Some(&root), &["of a lost lease"]);
    lost.draft = BundleDraft {
        session_id: lost.draft.session_id,
        run_id: lost.draft.run_id,
        ..child.draft
    };
    let rejected = |text| Commit {
        conflict: ConflictPolicy::Reject,
        ..fixture.commit(Some(&root), &[text])
    };
    let commits = [
        fixture.commit(None, &["in flight"]),
        lost,
        rejected("first"),
        fixture.commit(Some(&root), &["fork"]),
        rejected("late"),
        fixture.commit(Some(&root), &["another fork"]),
    ];
    let results = commit_at_once(&*fixture.store, &commits).await;
    let [other, lost, first, fork, late, another] = results.try_into().unwrap();
    assert!(matches!(lost, Err(CommitError::LeaseLost)), "{lost:?}");
    let winner = first.as_ref().unwrap().session.head.run_id;
    assert!(
        matches!(late, Err(CommitError::Conflict { run_id }) if run_id == winner),
        "{late:?}"
    );
    let bundles = published(vec![other, first, fork, another]);
    assert_stored(&fixture, &bundles).await;
    let branches = bundles.iter().map(|bundle| bundle.head.position.branch_id);
    let expected = [
        commits[0].draft.new_branch_id,
        root.head.position.branch_id,
        commits[3].draft.new_branch_id,
        commits[5].draft.new_branch_id,
    ];
    assert_eq!(branches.collect::<Vec<_>>(), expected);
    assert_eq!(fixture.count("sessions").await, 1 + 4);
    assert_eq!(fixture.count("history_segments").await, 1 + 4);
    assert_eq!(fixture.count("run_queue").await, 1);
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_that_is_refused_refuses_no_other() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let winner = fixture.child(&root, &["winner"]).await;
    let other = fixture.root(&["other"]).await;
    let gone = fixture.root(&["gone"]).await;
    let delete = format!("delete from sessions where session_id = '{}'", gone.head.session_id);
    fixture.execute(&delete).await;
    let rejected = Commit {
        conflict: ConflictPolicy::Reject,
        ..fixture.commit(Some(&root), &["rejected"])
    };
    let commits = [
        fixture.commit(None, &["first"]),
        rejected,
        fixture.commit(Some(&gone), &["without base"]),
        fixture.commit(Some(&root), &["fork"]),
        fixture.commit(Some(&other), &["one"]),
        fixture.commit(Some(&other), &["for the same position"]),
        fixture.commit(None, &["last"]),
    ];
    let results = commit_at_once(&*fixture.store, &commits).await;
    let [first, rejected, baseless, fork, one, same, last] = results.try_into().unwrap();
    assert!(
        matches!(rejected, Err(CommitError::Conflict { run_id }) if run_id == winner.head.run_id),
        "{rejected:?}"
    );
    assert!(matches!(baseless, Err(CommitError::MissingBase)), "{baseless:?}");
    let bundles = published(vec![first, fork, one, same, last]);
    assert_stored(&fixture, &bundles).await;
    assert_eq!(bundles[1].head.position.branch_id, commits[3].draft.new_branch_id);
    assert_eq!(bundles[2].head.position.branch_id, other.head.position.branch_id);
    assert_eq!(bundles[3].head.position.branch_id, commits[5].draft.new_branch_id);
    assert_eq!(fixture.count("sessions").await, 3 + 5);
    assert_eq!(fixture.count("runs").await, 4 + 5);
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_that_fails_fails_no_other() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let mut taken = fixture.commit(None, &["another session of the same id"]);
    taken.draft.session_id = root.head.session_id;
    taken.run = Some(run_of(&taken.draft));
    // Stored already, by an attempt whose response was lost.
    let repeated = fixture.commit(Some(&root), &["repeated"]);
    let earlier = fixture.publish(&repeated).await;
    let commits = [
        fixture.commit(None, &["first"]),
        taken,
        fixture.commit(None, &["second"]),
        repeated,
        fixture.commit(Some(&earlier), &["third"]),
    ];
    let results = commit_at_once(&*fixture.store, &commits).await;
    let [first, taken, second, repeated, third] = results.try_into().unwrap();
    assert!(matches!(taken, Err(CommitError::Exists)), "{taken:?}");
    let bundles = published(vec![first, second, repeated, third]);
    assert_eq!(bundles[2], *earlier);
    assert_stored(&fixture, &bundles).await;
    assert_eq!(fixture.load(root.head.session_id).await, *root);
    assert_eq!(fixture.count("sessions").await, 5);
}

#[tokio::test(flavor = "current_thread")]
async fn a_huge_session_is_committed_beside_the_batch() {
    let Some(fixture) = postgres().await else { return };
    // The committer connects with its first batch.
    fixture.root(&["earlier"]).await;
    // Random digits hardly compress.
    let huge: String = (0..40_000).map(|_| uuid::Uuid::now_v7().to_string()).collect();
    let commits = [
        fixture.commit(None, &["first"]),
        fixture.commit(None, &["second"]),
        fixture.commit(None, &[&huge]),
        fixture.commit(None, &["third"]),
    ];
    let statements = Statements::default();
    let listening = listen(Registry::default().with(statements.clone()));
    let bundles = published(commit_at_once(&*fixture.store, &commits).await);
    drop(listening);
    assert_eq!(
        statements.taken(),
        4,
        "the first, the small ones, and for the huge one the session and the commit"
    );
    assert_stored(&fixture, &bundles).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_session_that_waits_for_a_lock_makes_no_other_wait() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let position = root.head.position;
    // Another process takes the position, and has not committed yet.
    let insert = format!(
        "insert into history_segments (
            tenant, branch_id, session_id, position, first_index, message_count, schema_version, encoding, payload)
        values ('{}', '{}', '{}', {}, 1, 1, 1, 0, '')",
        fixture.tenant,
        position.branch_id,
        SessionId::generate(&UuidV7Source),
        position.position + 1
    );
    let held = Held::begin(&fixture, &insert).await;
    let commits = [
        fixture.commit(None, &["first"]),
        fixture.commit(Some(&root), &["waits"]),
        fixture.commit(None, &["second"]),
        fixture.commit(None, &["third"]),
    ];
    let (waiting, others) = tokio::join!(fixture.store.session_commit(&commits[1]), async {
        let others = [&commits[0], &commits[2], &commits[3]].map(|commit| fixture.store.session_commit(commit));
        let others = join_all(others).await;
        // The others are stored while the first one waits, now on a connection of the pool.
        until_waiting(&fixture, 1).await;
        let later = fixture.root(&["later"]).await;
        assert_stored(&fixture, &[(*later).clone()]).await;
        held.end("rollback").await;
        others
    });
    assert_stored(&fixture, &published(others)).await;
    let waited = waiting.unwrap().session;
    assert_eq!(waited.head.position.branch_id, position.branch_id);
    assert_stored(&fixture, &[waited]).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_cancelled_commit_is_left_out_and_the_others_go_on() {
    let Some(fixture) = postgres().await else { return };
    let commits: Vec<_> = (0..6).map(|turn| fixture.commit(None, &[&turn.to_string()])).collect();
    let mut committing: Vec<_> = commits
        .iter()
        .map(|commit| Box::pin(fixture.store.session_commit(commit)))
        .collect();
    for commit in &mut committing {
        assert!(futures_util::poll!(commit.as_mut()).is_pending());
    }
    // The first one is in flight, so it is committed all the same.
    drop(committing.drain(..3));
    let bundles = published(join_all(committing).await);
    assert_stored(&fixture, &bundles).await;
    let found = fixture
        .store
        .bundle_load(&fixture.tenant, commits[0].draft.session_id)
        .await;
    assert!(found.unwrap().is_some());
    assert_eq!(fixture.count("sessions").await, 4);
    assert_eq!(fixture.count("runs").await, 4);
}

#[tokio::test(flavor = "current_thread")]
async fn a_store_that_closes_commits_what_waits() {
    let Some(fixture) = postgres().await else { return };
    let commits: Vec<_> = (0..8).map(|turn| fixture.commit(None, &[&turn.to_string()])).collect();
    let (results, ()) = tokio::join!(commit_at_once(&*fixture.store, &commits), fixture.store.close());
    let bundles = published(results);
    let store = open(fixture.database.url(), TestDatabase::settings()).await.unwrap();
    for bundle in bundles {
        let found = store.bundle_load(&fixture.tenant, bundle.head.session_id).await;
        assert_eq!(found.unwrap(), Some(bundle));
    }
    store.close().await;
}

// One thread, whose log has the batches of both processes.
#[tokio::test(flavor = "current_thread")]
async fn processes_that_commit_the_same_states_in_opposite_order_never_deadlock() {
    let Some(fixture) = postgres().await else { return };
    // A batch gives up when it has waited for a lock for 100 ms. The server looks for deadlocks
    // long before that.
    let look_early = "do $$ begin
            execute format('alter database %I set deadlock_timeout = %L', current_database(), '10ms');
        end $$";
    fixture.execute(look_early).await;
    let (log, _listening) = CapturedLog::listening(tracing::Level::DEBUG);
    let settings = StoreSettings {
        migrate: false,
        ..TestDatabase::settings()
    };
    let other = open(fixture.database.url(), settings).await.unwrap();
    for round in 0..20 {
        let parents: Vec<Arc<Bundle>> = join_all((0..6).map(|_| async { fixture.root(&["root"]).await })).await;
        // Each process continues all parents, with states that both of them are the first to write.
        let commits = |is_reversed: bool| {
            let mut commits: Vec<_> = (0..6)
                .map(|number| {
                    let mut commit = fixture.commit(Some(&parents[number]), &["next"]);
                    let notes = object(json!({"round": round, "number": number}));
                    let mut environment = (*commit.draft.environment).clone();
                    environment.variables = notes.clone().into_iter().collect();
                    commit.draft.environment = Arc::new(environment);
                    commit.draft.context.metadata = notes;
                    commit
                })
                .collect();
            if is_reversed {
                commits.reverse();
            }
            commits
        };
        let (forwards, backwards) = (commits(false), commits(true));
        let (one, two) = tokio::join!(
            commit_at_once(&*fixture.store, &forwards),
            commit_at_once(&*other, &backwards)
        );
        let branches: Vec<BranchId> = published(one)
            .into_iter()
            .chain(published(two))
            .map(|bundle| bundle.head.position.branch_id)
            .collect();
        for parent in &parents {
            let appended = branches
                .iter()
                .filter(|branch| **branch == parent.head.position.branch_id);
            assert_eq!(
                appended.count(),
                1,
                "one of both takes the position, and the other one forks"
            );
        }
    }
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    other.close().await;
    fixture.store.close().await;
    assert_eq!(fixture.database.number(deadlocks).await, 0);
    // The server counts them a moment later.
    let log = log.text();
    let deadlock = log.lines().find(|line| line.contains("deadlock detected"));
    assert_eq!(deadlock, None);
}
