//! What an observer of a store is told: each operation once, with its end.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use store::{Outcome, StoreObserver, StoreSettings, open};
use test_support::databases::{Engine, TestDatabase};

use crate::fixtures::Fixture;

#[derive(Debug, Default)]
struct Seen {
    operations: Mutex<Vec<(&'static str, Outcome)>>,
    batches: Mutex<Vec<usize>>,
}

impl StoreObserver for Seen {
    fn operation_ended(&self, operation: &'static str, outcome: Outcome, _: Duration) {
        self.operations.lock().push((operation, outcome));
    }

    fn batch_begun(&self, writes: usize) {
        self.batches.lock().push(writes);
    }
}

impl Seen {
    /// Returns what was seen since the last call.
    fn next(&self) -> Vec<(&'static str, Outcome)> {
        std::mem::take(&mut *self.operations.lock())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_operation_is_seen_once_on_sqlite() {
    each_operation_is_seen_once(Engine::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_operation_is_seen_once_on_postgres() {
    each_operation_is_seen_once(Engine::Postgres).await;
}

async fn each_operation_is_seen_once(engine: Engine) {
    let Some(mut fixture) = Fixture::new(engine).await else {
        return;
    };
    let seen = Arc::new(Seen::default());
    let settings = StoreSettings {
        observer: Some(Arc::clone(&seen) as _),
        ..TestDatabase::settings()
    };
    fixture.store = open(fixture.database.url(), settings).await.unwrap();
    assert_eq!(
        fixture.store.engine(),
        if engine == Engine::Sqlite { "sqlite" } else { "postgres" }
    );
    seen.next();

    let session = fixture.root(&["hello"]).await;
    assert_eq!(seen.next(), [("commit session", Outcome::Ok)]);
    assert_eq!(*seen.batches.lock(), [1]);
    fixture.load(session.head.session_id).await;
    assert_eq!(
        seen.next(),
        [("load bundle", Outcome::Ok), ("load history", Outcome::Ok)]
    );
    let connections = fixture.store.connections();
    assert!(connections.busy + connections.idle > 0, "{connections:?}");

    // A refusal is a response of the store, and what the store refuses to read is a failure.
    fixture
        .store
        .session_commit(&fixture.commit(None, &["again"]))
        .await
        .unwrap();
    seen.next();
    fixture.database.break_tables(&["sessions"]).await;
    fixture
        .store
        .session_lookup(&fixture.tenant, session.head.session_id)
        .await
        .unwrap_err();
    let last = seen.next();
    assert_eq!(
        last.last().map(|(_, outcome)| *outcome),
        Some(Outcome::Failed),
        "{last:?}"
    );
    fixture.database.mend_tables(&["sessions"]).await;
}
