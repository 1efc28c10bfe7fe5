//! Lists what a caller may run: agents, and models without an agent.

use super::context::RunContext;
use super::request::Allowance;
use agent::definition::AgentDefinition;
use store::StoreError;
use store::agents::{AgentPage, AgentRecord};
use values::clock::Timestamp;
use values::limits::RunLimits;
use values::model_ref::ModelRef;
use values::tenant::TenantId;

/// The most agents that are read at once.
const PAGE: u32 = 200;
/// The most bytes of definitions that are read at once.
const PAGE_BYTES: usize = 1 << 20;
/// The most agents of a list.
const MAX_AGENTS: usize = 10_000;

/// Something that a caller may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// The name of an agent, or `PROVIDER/MODEL`.
    pub name: String,
    /// When the agent's version was stored first; `None` for a model.
    pub created_at: Option<Timestamp>,
}

/// Lists the agents and the models that a caller may run. `key` are the limits of its API key.
pub async fn offered(ctx: &RunContext, tenant: &TenantId, key: &RunLimits) -> Result<Vec<Offered>, StoreError> {
    let mut found = Vec::new();
    let mut after = None;
    while found.len() < MAX_AGENTS {
        let page = AgentPage {
            after,
            limit: PAGE,
            bytes: PAGE_BYTES,
        };
        let list = ctx.agents.list(tenant, &page).await?;
        after = list.agents.last().map(|last| last.definition.name.clone());
        let agents = list.agents.into_iter();
        found.extend(agents.filter_map(|agent| offered_agent(ctx, tenant, key, &agent)));
        if list.is_last || after.is_none() {
            break;
        }
    }
    let models = ctx.models.names();
    found.extend(models.iter().filter_map(|model| offered_model(ctx, tenant, key, model)));
    Ok(found)
}

/// Finds an agent or a model that a caller may run.
pub async fn offered_lookup(
    ctx: &RunContext,
    tenant: &TenantId,
    key: &RunLimits,
    name: &str,
) -> Result<Option<Offered>, StoreError> {
    if let Ok(model) = name.parse() {
        let is_known = ctx.models.check(&model).is_ok();
        return Ok(offered_model(ctx, tenant, key, &model).filter(|_| is_known));
    }
    if !AgentDefinition::is_valid_name(name) {
        return Ok(None);
    }
    let agent = ctx.agents.lookup(tenant, name).await?;
    Ok(agent.and_then(|agent| offered_agent(ctx, tenant, key, &agent)))
}

fn offered_agent(ctx: &RunContext, tenant: &TenantId, key: &RunLimits, agent: &AgentRecord) -> Option<Offered> {
    let name = &agent.definition.name;
    may_run(ctx, tenant, key, name, agent.definition.model_chain()).then(|| Offered {
        name: name.clone(),
        created_at: Some(agent.created_at),
    })
}

fn offered_model(ctx: &RunContext, tenant: &TenantId, key: &RunLimits, model: &ModelRef) -> Option<Offered> {
    let name = model.to_string();
    may_run(ctx, tenant, key, &name, [model]).then_some(Offered { name, created_at: None })
}

fn may_run<'m>(
    ctx: &RunContext,
    tenant: &TenantId,
    key: &RunLimits,
    name: &str,
    models: impl IntoIterator<Item = &'m ModelRef>,
) -> bool {
    let limits = ctx.limits.of(tenant);
    let allowance = Allowance::new(limits, key);
    allowance.check_agent(name).is_ok() && allowance.check_models(models, &ctx.prices).is_ok()
}
