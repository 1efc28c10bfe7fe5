//! An open store with its database, and commits to it.

use std::sync::Arc;

use store::sessions::Commit;
use store::{Store, StoreSettings, open};
use test_support::databases::{Engine, TestDatabase};
use test_support::drafts::{commit_of, tenant, user};
use values::ids::SessionId;
use values::message::Message;
use values::session::Bundle;
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

    /// Counts the rows of a table.
    pub(crate) async fn count(&self, table: &str) -> i64 {
        self.database.number(&format!("select count(*) from {table}")).await
    }
}
