//! `agents`: shows agents, from files and from the store.

use anyhow::{bail, ensure};
use clap::Subcommand;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Deserialize;

use super::item::Item;
use super::output::{print_items, print_json, print_note};
use super::source::{ReadArgs, Source};
use crate::app::{self, Extensions};
use crate::http::AgentView;
use crate::run::agents::AgentDirectory;
use crate::run::refusal::suggestion;
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

/// The fields of an agent that a row shows. A key without the scope `admin` reads less of agents
/// from files.
#[derive(Deserialize)]
struct AgentFields {
    name: String,
    #[serde(default)]
    configured: bool,
    model: Option<String>,
    #[serde(default)]
    models: Vec<String>,
    #[serde(default)]
    description: String,
}

/// Runs the command. On a store, it also reads the configured files.
pub(super) async fn inspect(command: AgentsCommand, extensions: Extensions) -> anyhow::Result<()> {
    match command {
        AgentsCommand::List {
            read: ReadArgs { json, source },
        } => {
            source
                .with(async |source| show_list(source, json, extensions).await)
                .await
        }
        AgentsCommand::Show { name, read } => {
            read.source
                .with(async |source| show(source, &name, extensions).await)
                .await
        }
    }
}

async fn show_list(source: &Source<'_>, json: bool, extensions: Extensions) -> anyhow::Result<()> {
    let heading = ["AGENT", "FROM", "MODEL", "DESCRIPTION"];
    match source {
        Source::Service(service) => {
            let all: Vec<Item<AgentFields>> = service.list("/v1/agents", &[], usize::MAX).await?;
            print_items(json, &all, heading, row)
        }
        Source::Store { config, store, tenant } => {
            let (agents, faults) = app::agent_directory(store, config, extensions)?;
            let all = list(&agents, tenant).await?;
            let all = Item::all(all.into_iter().map(|agent| AgentView::whole(&agents, agent)))?;
            print_items(json, &all, heading, row)?;
            report_faults(&faults)
        }
    }
}

async fn show(source: &Source<'_>, name: &str, extensions: Extensions) -> anyhow::Result<()> {
    match source {
        Source::Service(service) => {
            let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
            print_json(&service.get_json(&format!("/v1/agents/{name}")).await?)
        }
        Source::Store { config, store, tenant } => {
            let (agents, faults) = app::agent_directory(store, config, extensions)?;
            if let Some(agent) = agents.lookup(tenant, name).await? {
                return print_json(&AgentView::whole(&agents, agent));
            }
            report_faults(&faults)?;
            let similar = agents.similar(tenant, name, |_| true).await?;
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

fn row(agent: &AgentFields) -> [String; 4] {
    let models = agent.model.iter().chain(&agent.models).cloned();
    [
        agent.name.clone(),
        if agent.configured { "file" } else { "store" }.to_owned(),
        models.collect::<Vec<_>>().join(", "),
        agent.description.clone(),
    ]
}
