//! What has to change in a database that was restored from a backup, before services use it.

use std::fmt;

use async_trait::async_trait;

use super::audit::Requester;
use super::error::StoreError;

/// What was changed after a restore.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RestoreFigures {
    /// Runs in the queue, which continue under new leases.
    pub runs: u64,
    /// Messages of webhooks that are not sent, since they may have been sent after the backup.
    pub deliveries: u64,
    /// Sessions of the console, some of which may have been logged out after the backup.
    pub console_sessions: u64,
}

/// Prepares a restored database.
#[async_trait]
pub trait RestoreStore: Send + Sync + fmt::Debug {
    /// Ends all leases and raises their fence tokens, so that no worker from before the restore can
    /// write. Gives up messages of webhooks that are due, and ends the sessions of the console.
    async fn restore_finish(&self, by: &Requester) -> Result<RestoreFigures, StoreError>;
}
