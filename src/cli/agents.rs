//! `agents`: shows agents, from files and from the store.

use std::sync::Arc;

use anyhow::{bail, ensure};
use clap::Subcommand;

use super::ReadArgs;
use super::output::{print_json, print_list, print_note};
use crate::app::{self, Extensions};
use crate::config::Config;
use crate::http::AgentView;
use crate::run::agents::AgentDirectory;
use crate::run::refusal::suggestion;
use store::Store;
use store::agents::{AgentPage, AgentRecord};
use values::causes::with_causes;
use values::tenant::TenantId;

/// The most agents that one query returns.
const PAGE: u32 = 200;
/// The most bytes of their definitions, as JSON.
const PAGE_BYTES: usize = 4 << 20;

/// The commands about agents.
#[derive(Debug, Subcommand)]
pub(super) enum AgentsCommand {
    /// Lists agents by name.
    List {
        #[command(flatten)]
        read: ReadArgs,
    },
    /// Prints the definition of an agent as JSON.
    Show {
        /// The agent's name.
        name: String,
        #[command(flatten)]
        read: ReadArgs,
    },
}

/// Runs the command against the store and the configured files.
pub(super) async fn inspect(
    config: &Config,
    store: &Arc<dyn Store>,
    command: AgentsCommand,
    extensions: Extensions,
) -> anyhow::Result<()> {
    let (agents, faults) = app::agent_directory(store, config, extensions)?;
    match command {
        AgentsCommand::List { read } => {
            let all = list(&agents, &read.tenant).await?;
            let heading = ["AGENT", "FROM", "MODEL", "DESCRIPTION"];
            print_list(
                read.json,
                all,
                |agent| AgentView::whole(&agents, agent),
                heading,
                |agent| row(&agents, agent),
            )?;
            report_faults(&faults)
        }
        AgentsCommand::Show { name, read } => {
            if let Some(agent) = agents.lookup(&read.tenant, &name).await? {
                return print_json(&AgentView::whole(&agents, agent));
            }
            report_faults(&faults)?;
            let similar = agents.similar(&read.tenant, &name, |_| true).await?;
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

fn row(agents: &AgentDirectory, agent: &AgentRecord) -> [String; 4] {
    let definition = &agent.definition;
    let models: Vec<String> = definition.model_chain().map(ToString::to_string).collect();
    [
        definition.name.clone(),
        if agents.is_configured(agent) { "file" } else { "store" }.to_owned(),
        models.join(", "),
        definition.description.clone(),
    ]
}
