//! Sweeps and removals while sessions are committed, forked and pointed to: each commit is whole or
//! fails clearly, and all that is retained is whole.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use store::CommitError;
use store::queue::{Acceptance, IfBusy, NewQueuedRun};
use store::retention::{RetentionRules, SessionRemoval};
use test_support::drafts::{now, requester};
use values::session::{Bundle, EnvironmentState};

use super::{KEEP_ALL, aged, older_than};
use crate::fixtures::Fixture;
use crate::sql::commit::subagents::subagent;
use crate::sql::queue::fixtures::{at, key, queued_run, thread_run};

on_both_engines!(
    sweeps_take_nothing_from_what_is_retained,
    a_base_that_is_removed_while_a_run_works_fails_its_commit,
    a_run_is_accepted_before_its_base_is_removed_or_not_at_all,
);

const COMMITTERS: usize = 6;
const COMMITS: usize = 60;
const MAX_COMMITS: usize = 50 * COMMITS;

/// The state that all tasks of the race share.
#[derive(Debug)]
struct Race {
    fixture: Fixture,
    /// Sessions that were published, removed ones included.
    published: Mutex<Vec<Arc<Bundle>>>,
    refused: AtomicUsize,
    is_over: AtomicBool,
}

impl Race {
    fn any(&self, choice: usize) -> Option<Arc<Bundle>> {
        let published = self.published.lock().unwrap();
        // Mostly one of the newest, so that several continue the same one.
        let recent = published.len().saturating_sub(8);
        let range = if choice.is_multiple_of(3) {
            0..published.len()
        } else {
            recent..published.len()
        };
        (!range.is_empty()).then(|| Arc::clone(&published[range.start + choice % range.len()]))
    }

    async fn commit(&self, committer: usize) {
        for number in 0..MAX_COMMITS {
            // On a slow machine the first sweep may come late.
            if number >= COMMITS && self.refused.load(Ordering::SeqCst) > 0 {
                return;
            }
            let choice = number * 7_919 + committer * 104_729;
            let base = self.any(choice).filter(|_| number % 10 != 0);
            let mut commit = self.fixture.commit(base.as_ref(), &["question", "answer"]);
            if number % 4 == 0 {
                // Few environments, so that one comes and goes under many sessions.
                commit.draft.environment = Arc::new(EnvironmentState {
                    variables: [("city".to_owned(), json!(choice % 3))].into(),
                    ..EnvironmentState::default()
                });
            }
            if number % 9 == 0 {
                let own = commit.draft.session_id;
                let child = subagent(&commit, own, base.as_ref(), &["task"]);
                commit.children.push(child);
            }
            let commit = aged(commit, now(), i64::try_from(choice % 20).unwrap());
            match self.fixture.store.session_commit(&commit).await {
                Ok(committed) => {
                    let bundles = std::iter::once(committed.session).chain(committed.children);
                    self.published.lock().unwrap().extend(bundles.map(Arc::new));
                }
                Err(CommitError::MissingBase) => {
                    let found = self
                        .fixture
                        .store
                        .session_lookup(&self.fixture.tenant, commit.draft.session_id);
                    assert_eq!(found.await.unwrap(), None);
                    self.refused.fetch_add(1, Ordering::SeqCst);
                }
                Err(error) => panic!("{error:?}"),
            }
        }
    }

    async fn sweep(&self) {
        let rules = [
            older_than(10),
            older_than(15),
            RetentionRules {
                min_age: Duration::ZERO,
                ..older_than(2)
            },
        ];
        for rules in rules.into_iter().cycle() {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            match self.fixture.try_sweep(rules, now(), 5).await {
                Err(error) if !error.is_transient() => panic!("{error:?}"),
                _ => tokio::task::yield_now().await,
            }
        }
    }

    async fn remove(&self) {
        for choice in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            if let Some(bundle) = self.any(choice * 31) {
                let id = bundle.head.session_id;
                let removal = self
                    .fixture
                    .store
                    .session_remove(&self.fixture.tenant, id, choice % 2 == 0, &requester())
                    .await;
                match removal {
                    Err(error) if !error.is_transient() => panic!("{error:?}"),
                    _ => (),
                }
            }
            tokio::task::yield_now().await;
        }
    }

    async fn point(&self) {
        for choice in 0.. {
            if self.is_over.load(Ordering::SeqCst) {
                return;
            }
            if let Some(bundle) = self.any(choice * 17) {
                let name = format!("thread-{}", choice % 5).parse().unwrap();
                self.fixture.move_thread(&name, bundle.head.session_id).await;
            }
            tokio::task::yield_now().await;
        }
    }
}

async fn sweeps_take_nothing_from_what_is_retained(fixture: Fixture) {
    let race = Race {
        fixture,
        published: Mutex::default(),
        refused: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    let committing = async {
        join_all((0..COMMITTERS).map(|committer| race.commit(committer))).await;
        race.is_over.store(true, Ordering::SeqCst);
    };
    tokio::join!(committing, race.sweep(), race.sweep(), race.remove(), race.point());
    let fixture = &race.fixture;
    fixture.sweep(KEEP_ALL, now(), 100).await;
    let mut retained = 0;
    let published = std::mem::take(&mut *race.published.lock().unwrap());
    for bundle in &published {
        let id = bundle.head.session_id;
        if fixture.head(id).await.is_some() {
            let messages = usize::try_from(bundle.head.message_count).unwrap();
            fixture.assert_whole(bundle, messages).await;
            retained += 1;
        }
    }
    assert_eq!(fixture.count("sessions").await, retained);
    let removed = fixture.count("removed_sessions").await;
    assert_eq!(fixture.count("history_segments").await, retained + removed);
    let unused = "states h where not exists (
        select 1 from sessions s where s.environment_hash = h.hash or s.context_hash = h.hash)";
    assert_eq!(fixture.count(unused).await, 0);
    let lost = "threads t where not exists (select 1 from sessions s where s.session_id = t.session_id)";
    assert_eq!(fixture.count(lost).await, 0);
    // The race is worth nothing unless sessions went under commits at work.
    assert!(race.refused.load(Ordering::SeqCst) > 0 && retained < i64::try_from(published.len()).unwrap());
}

async fn a_base_that_is_removed_while_a_run_works_fails_its_commit(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let commit = fixture.commit(Some(&root), &["next"]);
    let removal = fixture.remove(root.head.session_id).await;
    assert!(matches!(removal, SessionRemoval::Removed(_)));
    let error = fixture.store.session_commit(&commit).await.unwrap_err();
    assert!(matches!(error, CommitError::MissingBase), "{error:?}");
    for table in [
        "sessions",
        "history_segments",
        "history_branches",
        "states",
        "runs",
        "removed_sessions",
    ] {
        assert_eq!(fixture.count(table).await, 0, "{table}");
    }
}

/// A run with a key that is to continue the session.
pub(crate) fn run_from(fixture: &Fixture, base: &Bundle, name: &str) -> NewQueuedRun {
    let mut run = queued_run(&fixture.tenant);
    run.summary.base_session_id = Some(base.head.session_id);
    run.idempotency = Some(key(name, "body", at(1_000_000_000)));
    run
}

async fn a_run_is_accepted_before_its_base_is_removed_or_not_at_all(fixture: Fixture) {
    let mut refused = 0;
    for round in 0..40 {
        let root = fixture.root(&["root"]).await;
        let base = root.head.session_id;
        let run = run_from(&fixture, &root, &format!("key {round}"));
        if round == 0 {
            let removal = fixture.remove(base).await;
            assert!(matches!(removal, SessionRemoval::Removed(_)));
        }
        let by = requester();
        let (enqueued, removal) = tokio::join!(
            fixture.store.run_accept(&run),
            fixture.store.session_remove(&fixture.tenant, base, false, &by),
        );
        let is_retained = fixture.head(base).await.is_some();
        match enqueued.unwrap() {
            Acceptance::Accepted { .. } => assert!(is_retained, "{removal:?}"),
            Acceptance::MissingBase(missing) => {
                assert_eq!((missing, is_retained), (base, false), "{removal:?}");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    // What was refused has left nothing.
    for table in ["run_queue", "idempotency_keys"] {
        assert_eq!(fixture.count(table).await, 40 - refused, "{table}");
    }
    assert!(refused > 0);
    // What a run on a thread continues is seen when it begins.
    let root = fixture.root(&["root"]).await;
    let mut run = thread_run(&fixture.tenant, "t", IfBusy::Reject);
    run.summary.base_session_id = Some(root.head.session_id);
    let removal = fixture.remove(root.head.session_id).await;
    assert!(matches!(removal, SessionRemoval::Removed(_)));
    fixture.enqueue(&run).await;
}
