//! What the committer needs to know about a kind of write.

use async_trait::async_trait;
use sqlx::PgConnection;
use uuid::Uuid;

use values::tenant::TenantId;

/// A kind of write. One statement executes any number of them.
#[async_trait]
pub(super) trait BatchWrite: Send + Sync + Sized + 'static {
    /// What the statement decides about a write.
    type Decision: Send;

    /// Returns what no other write of the batch may have.
    fn key(&self) -> Option<WriteKey>;

    /// Returns about how many bytes it sends to the database.
    fn bytes(&self) -> usize;

    /// Executes writes with different keys.
    async fn execute_all(connection: &mut PgConnection, writes: &[&Self]) -> Result<Vec<Self::Decision>, sqlx::Error>;
}

/// What two writes of one batch may not share.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) enum WriteKey {
    /// The branch that a session may open.
    Branch(TenantId, Uuid),
    /// The progress of a run.
    Progress(TenantId, Uuid),
    /// An idempotency key.
    Idempotency(TenantId, String),
}

/// What became of a write.
#[derive(Debug)]
pub(super) enum Outcome<D> {
    Decided(D),
    /// It failed although it was alone.
    Failed(sqlx::Error),
    /// It has to be executed alone.
    Undecided,
}
