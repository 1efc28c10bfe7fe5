//! The resources that all commands of a worker share.

use std::sync::Arc;

use super::directories::Directories;
use store::{LeaseClock, Store};
use tools::Commands;
use workspace::WorkspaceLimits;

/// The resources that all commands of a worker share.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) store: Arc<dyn Store>,
    pub(super) commands: Arc<Commands>,
    pub(super) clock: LeaseClock,
    pub(super) directories: Directories,
    /// The limits of workspaces.
    pub(super) workspace: WorkspaceLimits,
}
