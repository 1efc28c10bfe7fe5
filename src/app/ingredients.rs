//! Builds the parts of agents from the configuration alone. Opens no store and starts nothing.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::agent_files::AgentFiles;
use super::extensions::Extensions;
use super::mcp_files::mcp_servers_of;
use super::tool_files::http_tools_of;
use super::{derived_settings, tool_settings};
use crate::command_queue::QueuedCommands;
use crate::config::{Backend, Config};
use crate::metrics::{Metrics, ObservedModels};
use crate::run::agents::{AgentChecks, AgentDirectory};
use agent::hooks::HookRegistry;
use agent::ports::{ModelCatalog, Tool};
use agent::{SummarisationFactory, builtin_hooks};
use models::Catalog;
use net::outgoing::{NameResolver, OutgoingClient, SystemResolver};
use store::Store;
use tools::mcp::McpServers;
use tools::webhooks::{SenderRules, WebhookHookFactory, WebhookSecret, WebhookSender};
use tools::{CommandBackend, Commands, ToolRegistry, builtin_tools, http_fetch, shell, shell_job};
use values::clock::{Clock, SystemClock};
use values::ids::{IdSource, UuidV7Source};
use values::limits::Limits;
use values::usage::PriceTable;

/// The available models, tools and hooks, and their shared resources.
#[derive(Debug)]
pub(super) struct Ingredients {
    pub(super) models: Arc<dyn ModelCatalog>,
    pub(super) tools: Arc<ToolRegistry>,
    pub(super) servers: Arc<McpServers>,
    pub(super) commands: Arc<Commands>,
    pub(super) hooks: Arc<HookRegistry>,
    pub(super) sender: Arc<WebhookSender>,
    pub(super) secrets: BTreeMap<String, WebhookSecret>,
    pub(super) prices: PriceTable,
    pub(super) limits: Arc<Limits>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) ids: Arc<dyn IdSource>,
}

impl Ingredients {
    /// Makes all parts. Without a store, agents can be checked but not run.
    pub(super) fn make(
        config: &Config,
        extensions: Extensions,
        store: Option<&Arc<dyn Store>>,
        metrics: Option<&Arc<Metrics>>,
    ) -> anyhow::Result<Self> {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let ids: Arc<dyn IdSource> = Arc::new(UuidV7Source);
        let models: Arc<dyn ModelCatalog> = Arc::new(Catalog::new(
            config.providers.values().cloned().collect(),
            &config.models,
            Arc::clone(&ids),
            Arc::clone(&clock),
        )?);
        let models = match metrics {
            Some(metrics) => Arc::new(ObservedModels::new(models, config.prices.clone(), Arc::clone(metrics))),
            None => models,
        };
        let commands = Commands::new(tool_settings::commands(config, extensions.sandbox_helper)?);
        let resolver: Arc<dyn NameResolver> = Arc::new(SystemResolver);
        let servers = Arc::new(mcp_servers_of(config, &resolver, &commands)?);
        let backend: Arc<dyn CommandBackend> = match (config.sandbox.backend, store) {
            (Backend::Worker, Some(store)) => Arc::new(QueuedCommands::new(
                Arc::clone(store),
                Arc::clone(&clock),
                Arc::clone(&ids),
                config.sandbox.worker_wait,
            )),
            (Backend::Worker, None) | (Backend::Local, _) => Arc::clone(&commands) as _,
        };
        let tools = Arc::new(ToolRegistry::new(
            tools(config, &commands, backend, &resolver, &clock)?
                .into_iter()
                .chain(extensions.tools),
            config.call_limits,
            Arc::clone(&clock),
            Arc::clone(&ids),
        )?);
        let sender = Arc::new(WebhookSender::new(config.sender)?);
        let secrets = derived_settings::webhook_secrets(config)?;
        let prices = config.prices.clone();
        let mut hooks = builtin_hooks();
        hooks.push(Box::new(WebhookHookFactory::new(Arc::clone(&sender), secrets.clone())));
        hooks.push(Box::new(SummarisationFactory::new(
            Arc::clone(&models),
            prices.clone(),
            config.context_windows.clone(),
        )));
        Ok(Self {
            models,
            tools,
            servers,
            commands,
            hooks: Arc::new(HookRegistry::new(hooks)),
            sender,
            secrets,
            prices,
            limits: Arc::clone(&config.limits),
            clock,
            ids,
        })
    }

    /// Returns the checks for definitions of agents.
    pub(super) fn checks(&self, config: &Config) -> AgentChecks {
        AgentChecks {
            models: Arc::clone(&self.models),
            tools: Arc::clone(&self.tools) as _,
            servers: Arc::clone(&self.servers) as _,
            hooks: Arc::clone(&self.hooks),
            webhooks: Arc::new(SenderRules::new(Arc::clone(&self.sender), self.secrets.clone())),
            prices: self.prices.clone(),
            limits: Arc::clone(&self.limits),
            budget: config.runs.budget.clone(),
        }
    }

    /// Makes the directory of agents.
    pub(super) fn directory(&self, store: &Arc<dyn Store>, config: &Config) -> anyhow::Result<AgentDirectory> {
        let files = Box::new(AgentFiles::new(&config.agents.directory));
        let clock = Arc::clone(&self.clock);
        Ok(AgentDirectory::new(
            Arc::clone(store),
            self.checks(config),
            clock,
            files,
        )?)
    }

    /// Makes the directory of valid agents, and reports invalid files.
    pub(super) fn usable_directory(
        &self,
        store: &Arc<dyn Store>,
        config: &Config,
    ) -> anyhow::Result<(AgentDirectory, Vec<anyhow::Error>)> {
        let found = AgentFiles::new(&config.agents.directory).find()?;
        let (checks, clock) = (self.checks(config), Arc::clone(&self.clock));
        let (usable, faults) = found.check(&checks);
        let directory = AgentDirectory::new(Arc::clone(store), checks, clock, Box::new(usable))?;
        Ok((directory, faults))
    }
}

/// Makes the built-in tools and the tools of the configured folder.
fn tools(
    config: &Config,
    commands: &Commands,
    backend: Arc<dyn CommandBackend>,
    resolver: &Arc<dyn NameResolver>,
    clock: &Arc<dyn Clock>,
) -> anyhow::Result<Vec<Arc<dyn Tool>>> {
    let client = OutgoingClient::new(
        config.http_fetch.rules.clone(),
        config.http_fetch.client,
        Arc::clone(resolver),
    )?;
    let mut tools = builtin_tools(clock);
    tools.push(shell(commands.settings(), backend, Arc::clone(clock)));
    tools.push(shell_job(commands.settings()));
    tools.push(http_fetch(tool_settings::http_fetch(config), client));
    tools.extend(http_tools_of(config, resolver, clock)?);
    Ok(tools)
}
