//! A kind of write, as the committer needs it.

use async_trait::async_trait;
use sqlx::PgConnection;
use uuid::Uuid;

use values::tenant::TenantId;

/// A kind of write. One statement executes any number of them.
#[async_trait]
pub(super) trait BatchWrite: Send + Sync + Sized + 'static {
    /// The decision of the statement about a write.
    type Decision: Send;

    /// Returns the key that no other write of the batch may have.
    fn key(&self) -> Option<WriteKey>;

    /// Returns about how many bytes it sends to the database.
    fn bytes(&self) -> usize;

    /// Executes writes with different keys.
    async fn execute_all(connection: &mut PgConnection, writes: &[&Self]) -> Result<Vec<Self::Decision>, sqlx::Error>;

    /// Executes the write alone.
    async fn execute(&self, connection: &mut PgConnection) -> Result<Self::Decision, sqlx::Error> {
        let decisions = Self::execute_all(connection, &[self]).await?;
        decisions.into_iter().next().ok_or(sqlx::Error::RowNotFound)
    }
}

/// A key that two writes of one batch may not share.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum WriteKey {
    /// The branch that a session may open.
    Branch(TenantId, Uuid),
    /// The progress of a run.
    Progress(TenantId, Uuid),
    /// An idempotency key.
    Idempotency(TenantId, String),
}
