//! Checks the definition of an agent before it is used.

use std::sync::Arc;

use crate::run::refusal::{Refusal, UnusableAgent};
use crate::run::request::{Allowance, unpriced};
use agent::CompiledFormat;
use agent::answers::ApprovalRule;
use agent::definition::AgentDefinition;
use agent::hooks::HookRegistry;
use agent::ports::{ModelCatalog, ModelLookupError, RunWebhook, ToolCatalog, ToolServers, WebhookRules};
use agent::prompt::check_prompt;
use agent::state::ExecutionBudget;
use values::json::contains_nul;
use values::limits::{Limits, RunLimits};
use values::model_ref::ModelRef;
use values::session::check_metadata;
use values::tenant::TenantId;
use values::usage::PriceTable;

/// An agent of a configuration file.
#[derive(Debug, Clone)]
pub struct ConfiguredAgent {
    /// A description of where it is defined, for operators.
    pub location: String,
    pub definition: AgentDefinition,
}

/// Checks definitions against the available models, tools, hooks and limits.
#[derive(Debug)]
pub struct AgentChecks {
    /// Finds models.
    pub models: Arc<dyn ModelCatalog>,
    /// Finds tools.
    pub tools: Arc<dyn ToolCatalog>,
    /// Finds MCP servers.
    pub servers: Arc<dyn ToolServers>,
    /// Finds hooks.
    pub hooks: Arc<HookRegistry>,
    /// Checks the addresses of webhooks.
    pub webhooks: Arc<dyn WebhookRules>,
    /// The prices of models.
    pub prices: PriceTable,
    /// The limits of tenants.
    pub limits: Arc<Limits>,
    /// The limits that apply if no definition sets one.
    pub budget: ExecutionBudget,
}

impl AgentChecks {
    /// Checks an agent of a configuration file. Returns the first error.
    pub fn check_configured(&self, agent: &ConfiguredAgent) -> Result<(), UnusableAgent> {
        self.check(&agent.definition).map_err(|source| UnusableAgent {
            location: agent.location.clone(),
            name: agent.definition.name.clone(),
            source,
        })
    }

    /// Returns the models of a definition that lack an API key.
    pub fn missing_keys(&self, definition: &AgentDefinition) -> Vec<ModelLookupError> {
        let looked_up = definition.model_chain().map(|model| self.models.model(model));
        let missing = looked_up.filter_map(Result::err);
        missing
            .filter(|error| matches!(error, ModelLookupError::MissingKey { .. }))
            .collect()
    }

    /// Checks a definition. Returns the first error.
    pub(in crate::run) fn check(&self, definition: &AgentDefinition) -> Result<(), Refusal> {
        if !AgentDefinition::is_valid_name(&definition.name) {
            return Err(Refusal::invalid("name", AgentDefinition::NAME_RULE));
        }
        let within = |field| move |fault| Refusal::within(field, fault);
        definition.parameters.check().map_err(within("parameters"))?;
        definition.compiler.check().map_err(invalid("compiler"))?;
        definition.error_policy.check().map_err(within("error_policy"))?;
        definition.budget.check().map_err(within("budget"))?;
        let metadata = check_metadata(&definition.metadata);
        let without_nul = if contains_nul(&definition.metadata) {
            Err("NUL characters are not allowed".to_owned())
        } else {
            Ok(())
        };
        metadata.and(without_nul).map_err(invalid("metadata"))?;
        check_prompt(&definition.system_prompt)?;
        CompiledFormat::of(&definition.response_format)?;
        definition.check_script().map_err(invalid("script"))?;
        if definition.model.is_some() != definition.models.is_empty() {
            return Err(Refusal::invalid("model", "an agent has either a model or models"));
        }
        definition
            .model_chain()
            .try_for_each(|model| self.models.check(model))?;
        self.check_prices(definition)?;
        self.tools.executor(&definition.tools)?;
        definition.check_servers().map_err(invalid("mcp"))?;
        let servers = self.servers.check(&definition.mcp);
        servers.map_err(|error| Refusal::invalid("mcp", error.to_string()))?;
        definition.check_deferred_tools().map_err(invalid("deferred_tools"))?;
        definition
            .check_tool_choice()
            .map_err(invalid("parameters.tool_choice"))?;
        definition.check_client_tools().map_err(invalid("client_tools"))?;
        ApprovalRule::check_all(&definition.approvals).map_err(invalid("approvals"))?;
        self.check_provider_tools(definition)?;
        definition.check_hook_count().map_err(invalid("hooks"))?;
        self.hooks.check_agent(definition)?;
        self.check_webhook(definition.webhook.as_ref(), None)?;
        let subagents = definition.check_subagents();
        subagents.map_err(|(field, message)| invalid(field)(message))
    }

    /// Checks a definition that a tenant wrote.
    pub(in crate::run) fn check_of_tenant(
        &self,
        definition: &AgentDefinition,
        tenant: &TenantId,
    ) -> Result<(), Refusal> {
        self.check(definition)?;
        let hook_models = self.hooks.models(&definition.hooks)?;
        let no_key = RunLimits::default();
        Allowance::new(self.limits.of(tenant), &no_key)
            .check_models(definition.model_chain().chain(&hook_models), &self.prices)?;
        self.hooks.check_tenant(&definition.hooks, tenant)?;
        self.check_webhook(definition.webhook.as_ref(), Some(tenant))
    }

    /// Checks a webhook. `tenant` is the tenant that chose the webhook, if a tenant chose it.
    pub(in crate::run) fn check_webhook(
        &self,
        webhook: Option<&RunWebhook>,
        tenant: Option<&TenantId>,
    ) -> Result<(), Refusal> {
        let checked = webhook.map_or(Ok(()), |webhook| self.webhooks.check(webhook, tenant));
        checked.map_err(|fault| invalid(fault.field)(fault.message))
    }

    /// Refuses tools of an unknown provider, since no model would ever be offered them.
    fn check_provider_tools(&self, definition: &AgentDefinition) -> Result<(), Refusal> {
        definition.check_provider_tools().map_err(invalid("provider_tools"))?;
        for provider in definition.provider_tools.keys() {
            // Only the provider must exist, so any model name works.
            let model = format!("{provider}/any").parse::<ModelRef>().ok();
            let model = model.filter(|model| model.provider() == provider);
            let known = model.map(|model| self.models.check(&model));
            if matches!(known, None | Some(Err(ModelLookupError::UnknownProvider { .. }))) {
                return Err(invalid("provider_tools")(format!("no provider is named {provider:?}")));
            }
        }
        Ok(())
    }

    /// Refuses a cost limit if a model has no price. Its cost would silently count as zero.
    fn check_prices(&self, definition: &AgentDefinition) -> Result<(), Refusal> {
        if definition.budget.max_cost.or(self.budget.max_cost).is_none() {
            return Ok(());
        }
        let is_unpriced = |model: &&_| self.prices.price(model).is_none();
        definition
            .model_chain()
            .find(is_unpriced)
            .map_or(Ok(()), |model| Err(unpriced(&definition.name, model)))
    }
}

fn invalid(field: &'static str) -> impl Fn(String) -> Refusal {
    move |message| Refusal::invalid(field, message)
}
