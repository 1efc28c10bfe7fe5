//! Puts a worker for commands together: the store, the sandbox, and nothing of agents or models.

use std::sync::Arc;

use super::{derived_settings, open_store, tool_settings};
use crate::app::Extensions;
use crate::command_queue::CommandWorker;
use crate::config::Config;
use store::Store;
use tools::Commands;
use values::clock::{Clock, SystemClock};
use values::ids::UuidV7Source;

/// A worker for commands, assembled.
#[derive(Debug)]
pub struct CommandWorkerApp {
    /// Takes commands and runs them.
    pub worker: Arc<CommandWorker>,
    /// Runs commands on this host.
    pub commands: Arc<Commands>,
    /// The store with the queue.
    pub store: Arc<dyn Store>,
}

impl CommandWorkerApp {
    /// Opens the store and puts everything together.
    pub async fn build(config: &Config, extensions: Extensions) -> anyhow::Result<Self> {
        let store = open_store(config).await?;
        let commands = Commands::new(tool_settings::commands(config, extensions.sandbox_helper)?);
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let worker = CommandWorker::new(
            Arc::clone(&store),
            Arc::clone(&commands),
            derived_settings::command_worker(config),
            clock,
            &UuidV7Source,
        );
        Ok(Self {
            worker,
            commands,
            store,
        })
    }
}
