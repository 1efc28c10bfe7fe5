//! `agents`: looks at agents, those of files and those that callers have stored.

use std::sync::Arc;

use anyhow::Context as _;
use clap::Subcommand;
use serde_json::json;

use super::output::{print_json, print_table};
use super::{JsonArgs, TenantArgs, store};
use crate::app::{self, Extensions};
use crate::config::Config;
use crate::json::Value;
use crate::run::AgentDirectory;
use crate::store::{AgentPage, AgentRecord, Store};
use crate::tenant::TenantId;

/// The most agents that one question to the store asks for.
const PAGE: u32 = 200;
/// The bytes of their definitions, as JSON.
const PAGE_BYTES: usize = 4 << 20;

/// What to look at.
#[derive(Debug, Subcommand)]
pub(super) enum AgentsCommand {
    /// Lists agents by name.
    List {
        #[command(flatten)]
        json: JsonArgs,
        #[command(flatten)]
        tenant: TenantArgs,
    },
    /// Prints the definition of an agent as JSON.
    Show {
        /// The agent's name.
        name: String,
        #[command(flatten)]
        tenant: TenantArgs,
    },
}

/// Runs the command against the configured store and files.
pub(super) async fn look(config: Config, command: AgentsCommand, extensions: Extensions) -> anyhow::Result<()> {
    let store = store::open_existing(&config).await?;
    let done = look_into(&store, &config, command, extensions).await;
    store.close().await;
    done
}

async fn look_into(
    store: &Arc<dyn Store>,
    config: &Config,
    command: AgentsCommand,
    extensions: Extensions,
) -> anyhow::Result<()> {
    let agents = app::agent_directory(store, config, extensions)?;
    match command {
        AgentsCommand::List { json, tenant } => {
            let all = list(&agents, &tenant.tenant).await?;
            if json.json {
                let shown: Vec<_> = all.iter().map(|agent| shown(&agents, agent)).collect();
                return print_json(&shown);
            }
            let rows: Vec<_> = all.iter().map(|agent| row(&agents, agent)).collect();
            Ok(print_table(["AGENT", "FROM", "MODEL", "DESCRIPTION"], &rows)?)
        }
        AgentsCommand::Show { name, tenant } => {
            let agent = agents.lookup(&tenant.tenant, &name).await?;
            let agent = agent.with_context(|| format!("there is no agent named {name:?}"))?;
            print_json(&shown(&agents, &agent))
        }
    }
}

async fn list(agents: &AgentDirectory, tenant: &TenantId) -> anyhow::Result<Vec<AgentRecord>> {
    let mut all: Vec<AgentRecord> = Vec::new();
    loop {
        let page = AgentPage {
            after: all.last().map(|agent| agent.definition.name.clone()),
            limit: PAGE,
            bytes: PAGE_BYTES,
        };
        let more = agents.list(tenant, &page).await?;
        all.extend(more.agents);
        if more.is_last {
            return Ok(all);
        }
    }
}

fn origin(agents: &AgentDirectory, agent: &AgentRecord) -> &'static str {
    if agents.is_configured(agent) { "file" } else { "store" }
}

fn row(agents: &AgentDirectory, agent: &AgentRecord) -> [String; 4] {
    let definition = &agent.definition;
    let models: Vec<String> = definition.model_chain().map(ToString::to_string).collect();
    [
        definition.name.clone(),
        origin(agents, agent).to_owned(),
        models.join(", "),
        definition.description.clone(),
    ]
}

fn shown(agents: &AgentDirectory, agent: &AgentRecord) -> Value {
    json!({
        "name": agent.definition.name,
        "from": origin(agents, agent),
        "version": agent.version,
        "definition": agent.definition,
    })
}
