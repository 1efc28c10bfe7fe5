//! An open store with its database, and commits to it.

use std::sync::Arc;

use agent::record::{RunRecord, ThreadName};
use store::queue::{Lease, RenewedLease};
use store::retention::SessionRemoval;
use store::sessions::{Commit, VerifyReport};
use store::threads::{ThreadExpectation, ThreadPut};
use store::{Store, StoreSettings, open};
use test_support::databases::{Engine, TestDatabase};
use test_support::drafts::{commit_of, now, requester, tenant, user};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::message::Message;
use values::session::{Bundle, SessionHead};
use values::tenant::TenantId;

/// An open store with its database.
#[derive(Debug)]
pub(crate) struct Fixture {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) tenant: TenantId,
    pub(crate) database: TestDatabase,
}

impl Fixture {
    /// Opens a store on an empty database; `None` when there is no server.
    pub(crate) async fn new(engine: Engine) -> Option<Self> {
        let database = TestDatabase::new(engine).await?;
        let store = open(database.url(), TestDatabase::settings()).await.unwrap();
        Some(Self {
            store,
            tenant: tenant("acme"),
            database,
        })
    }

    /// Opens a store on an empty PostgreSQL database with one connection, so that none is set up
    /// while statements are counted; `None` when there is no server.
    pub(crate) async fn on_one_connection() -> Option<Self> {
        let database = TestDatabase::postgres().await?;
        let settings = StoreSettings {
            max_connections: 1,
            ..TestDatabase::settings()
        };
        Some(Self {
            store: open(database.url(), settings).await.unwrap(),
            tenant: tenant("acme"),
            database,
        })
    }

    /// Publishes a session without parent.
    pub(crate) async fn root(&self, texts: &[&str]) -> Arc<Bundle> {
        self.publish(&self.commit(None, texts)).await
    }

    /// Publishes a session that continues another.
    pub(crate) async fn child(&self, parent: &Arc<Bundle>, texts: &[&str]) -> Arc<Bundle> {
        self.publish(&self.commit(Some(parent), texts)).await
    }

    /// Publishes a commit that must succeed.
    pub(crate) async fn publish(&self, commit: &Commit) -> Arc<Bundle> {
        Arc::new(self.store.session_commit(commit).await.unwrap().session)
    }

    /// Makes a commit of messages with these texts, with the record of its run.
    pub(crate) fn commit(&self, parent: Option<&Arc<Bundle>>, texts: &[&str]) -> Commit {
        self.commit_of(parent, texts.iter().map(|text| user(text)).collect())
    }

    /// Makes a commit of messages, with the record of its run.
    pub(crate) fn commit_of(&self, parent: Option<&Arc<Bundle>>, messages: Vec<Arc<Message>>) -> Commit {
        commit_of(&self.tenant, parent, messages)
    }

    /// Loads a session that must exist.
    pub(crate) async fn load(&self, session_id: SessionId) -> Bundle {
        self.store.bundle_load(&self.tenant, session_id).await.unwrap().unwrap()
    }

    /// Verifies a session, which must exist.
    pub(crate) async fn verify(&self, session_id: SessionId) -> VerifyReport {
        let report = self.store.session_verify(&self.tenant, session_id).await;
        report.unwrap().unwrap()
    }

    /// Returns the record of a run.
    pub(crate) async fn run(&self, run_id: RunId) -> Option<RunRecord> {
        self.store.run_lookup(&self.tenant, run_id).await.unwrap()
    }

    /// Returns the head of a session.
    pub(crate) async fn head(&self, session_id: SessionId) -> Option<SessionHead> {
        self.store.session_lookup(&self.tenant, session_id).await.unwrap()
    }

    /// Removes a session without its descendants.
    pub(crate) async fn remove(&self, session_id: SessionId) -> SessionRemoval {
        let by = requester();
        let removal = self.store.session_remove(&self.tenant, session_id, false, &by);
        removal.await.unwrap()
    }

    /// Moves a thread, wherever it points.
    pub(crate) async fn move_thread(&self, name: &ThreadName, session_id: SessionId) -> ThreadPut {
        let anything = ThreadExpectation::Anything;
        let put = self.store.thread_put(&self.tenant, name, session_id, anything, now());
        put.await.unwrap()
    }

    /// Renews a lease, if it is still the holder's.
    pub(crate) async fn renew(&self, lease: &Lease, until: Timestamp) -> Vec<RenewedLease> {
        self.store
            .lease_renew(std::slice::from_ref(lease), until)
            .await
            .unwrap()
    }

    /// Counts the rows of a table.
    pub(crate) async fn count(&self, table: &str) -> i64 {
        self.database.number(&format!("select count(*) from {table}")).await
    }

    /// Counts the rows of several tables.
    pub(crate) async fn counts<const N: usize>(&self, tables: [&str; N]) -> [i64; N] {
        let mut counts = [0; N];
        for (count, table) in counts.iter_mut().zip(tables) {
            *count = self.count(table).await;
        }
        counts
    }

    /// Executes a statement on the database, which must succeed.
    pub(crate) async fn execute(&self, statement: &str) {
        self.database.execute(statement).await.unwrap();
    }
}

/// Opens a store on an empty PostgreSQL database; `None` when there is no server.
pub(crate) async fn postgres() -> Option<Fixture> {
    Fixture::new(Engine::Postgres).await
}
