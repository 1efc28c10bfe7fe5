//! The parts of this module that callers use.

use std::sync::Arc;

use super::control::RunController;
use super::deliveries::Redelivery;
use super::execute::RunStarter;
use super::files::SessionFiles;
use super::follow::Followers;
use super::idempotency::IdempotencyKeys;
use super::import::SessionImporter;
use super::lifecycle::RunLifecycle;
use super::rates::RequestRates;
use super::read::RunReader;
use super::remove::SessionRemover;

/// The parts of this module that callers use, each with its own purpose.
#[derive(Debug, Clone)]
pub struct Runs {
    /// Starts runs.
    pub starter: Arc<RunStarter>,
    /// Stops, cancels and steers them.
    pub controller: Arc<RunController>,
    /// Reads them.
    pub reader: Arc<RunReader>,
    /// Follows their events.
    pub followers: Arc<Followers>,
    /// Imports sessions.
    pub importer: Arc<SessionImporter>,
    /// Reads and changes the files of sessions.
    pub files: Arc<SessionFiles>,
    /// Removes sessions.
    pub remover: Arc<SessionRemover>,
    /// Sends webhook messages again.
    pub redelivery: Arc<Redelivery>,
    /// Recognizes repeated requests.
    pub keys: Arc<IdempotencyKeys>,
    /// Counts requests.
    pub rates: Arc<RequestRates>,
    /// Starts and ends the work on runs.
    pub lifecycle: Arc<RunLifecycle>,
}
