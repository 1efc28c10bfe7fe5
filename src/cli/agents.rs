//! `agents`: shows agents, from files and from the store.

use std::sync::Arc;

use anyhow::{bail, ensure};
use clap::Subcommand;

use super::output::{JsonArgs, print_json, print_list, print_note};
use super::{TenantArgs, store};
use crate::app::{self, Extensions};
use crate::config::Config;
use crate::http::{AgentView, with_causes};
use crate::run::{AgentDirectory, suggestion};
use crate::store::{AgentPage, AgentRecord, Store};
use crate::tenant::TenantId;

/// The most agents that one question to the store asks for.
const PAGE: u32 = 200;
/// The bytes of their definitions, as JSON.
const PAGE_BYTES: usize = 4 << 20;

/// What to show.
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
        json: JsonArgs,
        #[command(flatten)]
        tenant: TenantArgs,
    },
}

/// Runs the command against the configured store and files.
pub(super) async fn inspect(config: Config, command: AgentsCommand, extensions: Extensions) -> anyhow::Result<()> {
    let store = store::open_existing(&config).await?;
    let done = inspect_in(&store, &config, command, extensions).await;
    store.close().await;
    done
}

async fn inspect_in(
    store: &Arc<dyn Store>,
    config: &Config,
    command: AgentsCommand,
    extensions: Extensions,
) -> anyhow::Result<()> {
    let (agents, faults) = app::agent_directory(store, config, extensions)?;
    match command {
        AgentsCommand::List { json, tenant } => {
            let all = list(&agents, &tenant.tenant).await?;
            let heading = ["AGENT", "FROM", "MODEL", "DESCRIPTION"];
            print_list(
                json,
                all,
                |agent| AgentView::whole(&agents, agent),
                heading,
                |agent| row(&agents, agent),
            )?;
            report_faults(&faults)
        }
        AgentsCommand::Show {
            name,
            tenant,
            json: JsonArgs { .. },
        } => {
            if let Some(agent) = agents.lookup(&tenant.tenant, &name).await? {
                return print_json(&AgentView::whole(&agents, agent));
            }
            report_faults(&faults)?;
            let similar = agents.similar(&tenant.tenant, &name, |_| true).await?;
            bail!("there is no agent named {name:?}{}", suggestion(similar.as_deref()))
        }
    }
}

/// Reports invalid agents of files. Fails if there are any.
fn report_faults(faults: &[anyhow::Error]) -> anyhow::Result<()> {
    for fault in faults {
        print_note(format_args!("error: {}", with_causes(fault.as_ref())))?;
    }
    ensure!(faults.is_empty(), "not all files of agents can be used");
    Ok(())
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
