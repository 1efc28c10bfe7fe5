//! The trait of a store: everything that a backend does. The modules beside it have its parts.
//! Names are `noun_verb`. A lookup returns `None` if the row does not exist or belongs to another
//! tenant.

use std::fmt;

use async_trait::async_trait;

use super::agents::AgentStore;
use super::audit::AuditStore;
use super::commands::CommandStore;
use super::console_sessions::ConsoleSessionStore;
use super::contents::ContentStore;
use super::error::StoreError;
use super::keys::KeyStore;
use super::observer::Connections;
use super::outbox::OutboxStore;
use super::queue::{AcceptanceStore, LeaseStore, MessageStore, ProgressStore};
use super::restore::RestoreStore;
use super::retention::RetentionStore;
use super::runs::{RunReader, RunWriter};
use super::sessions::{SessionReader, SessionWriter};
use super::spend::SpendStore;
use super::threads::ThreadStore;
use super::token_revocations::TokenRevocationStore;

/// Everything that a backend does.
pub trait Store:
    SessionReader
    + SessionWriter
    + RunReader
    + RunWriter
    + AcceptanceStore
    + LeaseStore
    + ProgressStore
    + MessageStore
    + ThreadStore
    + SpendStore
    + OutboxStore
    + RetentionStore
    + RestoreStore
    + CommandStore
    + ContentStore
    + AgentStore
    + KeyStore
    + ConsoleSessionStore
    + TokenRevocationStore
    + AuditStore
    + StoreHealth
{
}

impl<T> Store for T where
    T: SessionReader
        + SessionWriter
        + RunReader
        + RunWriter
        + AcceptanceStore
        + LeaseStore
        + ProgressStore
        + MessageStore
        + ThreadStore
        + SpendStore
        + OutboxStore
        + RetentionStore
        + RestoreStore
        + CommandStore
        + ContentStore
        + AgentStore
        + KeyStore
        + ConsoleSessionStore
        + TokenRevocationStore
        + AuditStore
        + StoreHealth
{
}

/// Names the database, checks it and closes it.
#[async_trait]
pub trait StoreHealth: Send + Sync + fmt::Debug {
    /// Returns the name of the engine: `postgres` or `sqlite`.
    fn engine(&self) -> &'static str;

    /// Returns whether several processes may use the database.
    fn is_shared(&self) -> bool;

    /// Counts the connections.
    fn connections(&self) -> Connections;

    /// Checks that the database responds and that its schema is current.
    async fn health_check(&self) -> Result<(), StoreError>;

    /// Checks that the database takes writes, with a small one. A standby of PostgreSQL may refuse
    /// it if it did so when the store was opened, since the process then serves readers only. It
    /// may not once it was promoted.
    async fn write_check(&self) -> Result<(), StoreError>;

    /// Waits for open operations and closes all connections.
    async fn close(&self);
}
