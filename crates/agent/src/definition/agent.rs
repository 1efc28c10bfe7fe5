//! The definition of an agent, as an operator or a caller writes it. Data only.

use serde::{Deserialize, Serialize};

use super::durability::DurabilityChoice;
use super::error_policy::ErrorPolicy;
use super::script::ScriptStep;
use crate::answers::{ApprovalRule, ClientTool};
use crate::compilers::{CompilerConfig, Traces};
use crate::deferred_tools::{SEARCH_TOOLS, is_deferred};
use crate::ports::RunWebhook;
use crate::state::ExecutionBudget;
use values::json::{Object, is_default, is_yes, yes};
use values::limits::Pattern;
use values::model_parameters::{ModelParameters, ProviderTools, ToolChoice};
use values::model_ref::{ModelRef, ResponseFormat};

/// The definition of an agent. Stored as immutable versions, named by their hash.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentDefinition {
    /// Names the agent: 1 to 64 letters, digits, `-`, `_` and `.`, but neither `.` nor `..`. A
    /// request may leave it to its path.
    #[serde(default)]
    #[schema(pattern = "^((?!\\.{1,2}$)[A-Za-z0-9._-]{1,64})?$")]
    pub name: String,
    /// The purpose of the agent.
    #[serde(default)]
    pub description: String,
    /// Instructions above the conversation: a template over `variables` and `metadata`.
    #[serde(default)]
    pub system_prompt: String,
    /// How steps are made; by default `tool_calling`.
    #[serde(default)]
    pub driver: DriverKind,
    /// The steps of the driver `scripted`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub script: Vec<ScriptStep>,
    /// The model, `PROVIDER/MODEL`; either this or `models` is required.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<ModelRef>,
    /// Several models, the preferred one first. If a model fails before it has generated anything,
    /// the next one is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelRef>,
    /// How the model generates: `temperature`, `top_p`, `max_output_tokens`, `reasoning_effort`,
    /// `stop`, `tool_choice`, `single_tool_call`, and `extra` fields in the provider's own format.
    /// By default the provider's values apply.
    #[serde(default, skip_serializing_if = "ModelParameters::is_empty")]
    pub parameters: ModelParameters,
    /// Names of the tools that the model may call.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Names of the MCP servers whose tools the model may call, up to 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 16)]
    pub mcp: Vec<String>,
    /// The tools of `tools` and `mcp` that the model sees only after it has found them with
    /// `search_tools`: up to 256 names, or patterns in which `*` matches any text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>, max_items = 256)]
    pub deferred_tools: Vec<Pattern>,
    /// Tools that the caller executes. A call of one ends the run with the status `waiting`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 128)]
    pub client_tools: Vec<ClientTool>,
    /// The rules for approvals by the caller: the first rule that matches a call decides, and
    /// a call that no rule matches needs none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 64)]
    pub approvals: Vec<ApprovalRule>,
    /// Tools that a provider executes itself, such as a search of the web: for each provider that
    /// models of the agent belong to, a list in the provider's own format. A model of another
    /// provider is not offered them.
    #[serde(default, skip_serializing_if = "ProviderTools::is_empty")]
    #[schema(value_type = std::collections::BTreeMap<String, Vec<Object>>)]
    pub provider_tools: ProviderTools,
    /// Whether the tool calls of one completion are executed at the same time, as by default;
    /// otherwise one after another.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub parallel_tool_calls: bool,
    /// Other agents that may work for this one, each as a tool.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 32)]
    pub subagents: Vec<SubagentConfig>,
    /// The most levels of agents below this one, 0 to 8; by default 3.
    #[serde(default = "exactly::<MAX_DEPTH>", skip_serializing_if = "is_exactly::<MAX_DEPTH>")]
    #[schema(maximum = 8)]
    pub max_depth: u32,
    /// Limits of every run.
    #[serde(default)]
    pub budget: ExecutionBudget,
    /// The shape of the final output; by default text.
    #[serde(default)]
    pub response_format: ResponseFormat,
    /// How many times the model may correct an output that does not fit its shape; by default 2.
    #[serde(
        default = "exactly::<MAX_CORRECTIONS>",
        skip_serializing_if = "is_exactly::<MAX_CORRECTIONS>"
    )]
    pub max_corrections: u32,
    /// Chooses the messages of the history that go to the model.
    #[serde(default, skip_serializing_if = "is_default")]
    pub compiler: CompilerConfig,
    /// The traces of earlier runs that go to the model; by default `unfinished`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub traces: Traces,
    /// Hooks, attached by name, each with a priority and a configuration.
    #[serde(default)]
    #[schema(max_items = 32)]
    pub hooks: Vec<HookConfig>,
    /// The effect of errors: the name of a preset, or a decision for each kind of error. By default
    /// `ignore_tool_errors`.
    #[serde(default)]
    pub error_policy: ErrorPolicy,
    /// The part of a run that survives the loss of its worker; by default `auto`.
    #[serde(default, skip_serializing_if = "is_default")]
    pub durability: DurabilityChoice,
    /// Where to report the end of runs of the agent, unless a request names another webhook.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub webhook: Option<RunWebhook>,
    /// Key-value pairs that each new conversation begins with.
    #[serde(default)]
    pub metadata: Object,
}

/// The driver that makes the steps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DriverKind {
    /// The model asks for tools by the provider's own tool calls.
    #[default]
    ToolCalling,
    /// For models without tool calls: the model writes one decision at a time, and reads results of
    /// tools as text.
    React,
    /// No model: the steps of `script` are played.
    Scripted,
}

/// Attaches a hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// The name that the hook is registered by.
    pub name: String,
    /// Hooks of higher priority run first.
    #[serde(default)]
    pub priority: i32,
    /// The hook's own configuration.
    #[serde(default)]
    pub config: Object,
}

/// Lets an agent have another one work for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SubagentConfig {
    /// The name of the other agent.
    #[schema(pattern = "^(?!\\.{1,2}$)[A-Za-z0-9._-]{1,64}$")]
    pub agent: String,
    /// The name of the tool, different from all other tools of this agent; by default the agent's
    /// name, with `_` for each `.`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^[A-Za-z0-9_-]{1,64}$")]
    pub tool: Option<String>,
    /// The purpose of the tool, for the model; by default the agent's description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Exactly the tools that the subagent gets, all of them this agent's; by default the tools
    /// that both definitions name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Limits of each execution of the subagent, in addition to the limits of its own definition.
    #[serde(default, skip_serializing_if = "ExecutionBudget::is_empty")]
    pub budget: ExecutionBudget,
    /// The files of the subagent. `fork`, the default, is a copy of this agent's files that is
    /// merged into them when the subagent ends; `shared` are this agent's files, variables and
    /// resources themselves; `none` are no files.
    #[serde(default, skip_serializing_if = "is_default")]
    pub workspace: SubagentWorkspace,
}

/// The files that a subagent works on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SubagentWorkspace {
    /// A copy of the files of this agent, merged into them when the subagent ends.
    #[default]
    Fork,
    /// The files, variables and resources of this agent itself.
    Shared,
    /// None.
    None,
}

/// The default levels of agents below an agent.
const MAX_DEPTH: u32 = 3;
/// The most tools of one provider.
const MAX_PROVIDER_TOOLS: usize = 32;
/// The most names and patterns of deferred tools.
const MAX_DEFERRED: usize = 256;
/// The most servers of tools.
const MAX_SERVERS: usize = 16;
/// The most hooks.
const MAX_HOOKS: usize = 32;
/// The default number of corrections of a completion.
const MAX_CORRECTIONS: u32 = 2;

fn exactly<const N: u32>() -> u32 {
    N
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
fn is_exactly<const N: u32>(value: &u32) -> bool {
    *value == N
}

impl SubagentConfig {
    /// Returns the name of the tool. Agent names may contain dots, but tool names may not.
    pub fn tool_name(&self) -> String {
        self.tool.clone().unwrap_or_else(|| self.agent.replace('.', "_"))
    }
}

impl AgentDefinition {
    /// The longest name, in bytes.
    pub const MAX_NAME_LENGTH: usize = 64;

    /// The rule for names, in words for callers.
    pub const NAME_RULE: &'static str =
        "a name has 1 to 64 letters, digits, `-`, `_` and `.`, and is neither `.` nor `..`";

    /// Makes the agent that has nothing but a model. It is named like the model, so no other agent
    /// has its name.
    pub fn of_model(model: ModelRef) -> Self {
        Self {
            name: model.to_string(),
            description: String::new(),
            system_prompt: String::new(),
            driver: DriverKind::default(),
            script: Vec::new(),
            model: Some(model),
            models: Vec::new(),
            parameters: ModelParameters::default(),
            tools: Vec::new(),
            mcp: Vec::new(),
            deferred_tools: Vec::new(),
            client_tools: Vec::new(),
            approvals: Vec::new(),
            provider_tools: ProviderTools::new(),
            parallel_tool_calls: true,
            subagents: Vec::new(),
            max_depth: MAX_DEPTH,
            budget: ExecutionBudget::default(),
            response_format: ResponseFormat::default(),
            max_corrections: MAX_CORRECTIONS,
            compiler: CompilerConfig::default(),
            traces: Traces::default(),
            hooks: Vec::new(),
            error_policy: ErrorPolicy::default(),
            durability: DurabilityChoice::default(),
            webhook: None,
            metadata: Object::new(),
        }
    }

    /// Returns the names of the tools that requests can restrict: those of the service, and then
    /// those that the caller executes.
    pub fn tool_names(&self) -> Vec<String> {
        let client_tools = self.client_tools.iter().map(|tool| &tool.name);
        self.tools.iter().chain(client_tools).cloned().collect()
    }

    /// Checks the client tools. The error says what is wrong.
    pub fn check_client_tools(&self) -> Result<(), String> {
        let subagents = self.subagents.iter().map(SubagentConfig::tool_name);
        let others: Vec<_> = self.tools.iter().cloned().chain(subagents).collect();
        ClientTool::check_all(&self.client_tools, &others).map_err(|fault| fault.message)
    }

    /// Returns the models, the preferred one first.
    pub fn model_chain(&self) -> impl Iterator<Item = &ModelRef> {
        self.model.iter().chain(&self.models)
    }

    /// Checks that there is a script for the scripted driver, and for no other. The error says what
    /// is wrong.
    pub fn check_script(&self) -> Result<(), String> {
        match (self.driver, self.script.is_empty()) {
            (DriverKind::Scripted, true) => Err("the scripted driver needs at least one step".to_owned()),
            (DriverKind::Scripted, false) => {
                let checks = self.script.iter().map(ScriptStep::check).zip(1..);
                let fault = checks
                    .into_iter()
                    .find_map(|(check, number)| check.err().map(|words| format!("step {number}: {words}")));
                fault.map_or(Ok(()), Err)
            }
            (_, true) => Ok(()),
            (_, false) => Err("only the scripted driver plays a script".to_owned()),
        }
    }

    /// Checks that the driver supports the tool choice. The error says what is wrong.
    pub fn check_tool_choice(&self) -> Result<(), String> {
        self.check_tool_choice_of(&self.parameters, &self.tool_names())
    }

    /// Checks the tool choice for a session that overrides parameters and tools.
    pub fn check_tool_choice_of(&self, parameters: &ModelParameters, tools: &[String]) -> Result<(), String> {
        let choice = parameters.tool_choice.as_ref().unwrap_or(&ToolChoice::Auto);
        if *choice != ToolChoice::Auto && self.driver != DriverKind::ToolCalling {
            return Err("only the driver tool_calling takes a tool_choice".to_owned());
        }
        let subagents = self.subagents.iter().map(SubagentConfig::tool_name);
        let mut tools = tools.iter().cloned().chain(subagents);
        match choice {
            // The tools of servers are not known before a run.
            ToolChoice::Required if tools.next().is_none() && self.mcp.is_empty() => {
                Err("the tool_choice is required, and there are no tools".to_owned())
            }
            ToolChoice::Tool(name) if !tools.any(|tool| tool == *name) && self.mcp.is_empty() => Err(format!(
                "the tool_choice is {name:?}, which is neither one of the `tools` nor a subagent's"
            )),
            ToolChoice::Tool(name) if is_deferred(&self.deferred_tools, name) => {
                Err(format!("the tool_choice is {name:?}, which is deferred"))
            }
            _ => Ok(()),
        }
    }

    /// Checks that each pattern defers a tool, and that the model can find it. The error says what
    /// is wrong.
    pub fn check_deferred_tools(&self) -> Result<(), String> {
        let patterns = &self.deferred_tools;
        if patterns.len() > MAX_DEFERRED {
            return Err(format!("the most are {MAX_DEFERRED}"));
        }
        let defers = |pattern: &Pattern| {
            let pattern = std::slice::from_ref(pattern);
            self.tools.iter().any(|tool| is_deferred(pattern, tool))
        };
        // A pattern may be about the tools of servers, which are not known before a run.
        let idle = patterns.iter().find(|pattern| !defers(pattern));
        if let Some(idle) = idle.filter(|_| self.mcp.is_empty()) {
            return Err(format!(
                "{:?} matches none of the `tools` that can be deferred",
                idle.to_string()
            ));
        }
        if !patterns.is_empty() && !self.tools.iter().any(|tool| tool == SEARCH_TOOLS) {
            return Err(format!(
                "without {SEARCH_TOOLS:?} among the `tools`, no model finds deferred tools"
            ));
        }
        Ok(())
    }

    /// Checks the tools of providers, but not whether the providers exist. The error says what is
    /// wrong.
    pub fn check_provider_tools(&self) -> Result<(), String> {
        for (provider, tools) in &self.provider_tools {
            if tools.len() > MAX_PROVIDER_TOOLS {
                return Err(format!("the most tools of one provider are {MAX_PROVIDER_TOOLS}"));
            }
            if tools.iter().any(Object::is_empty) {
                return Err(format!("a tool of the provider {provider:?} has no fields"));
            }
            let names = tools.iter().filter_map(|tool| tool.get("name")?.as_str());
            let subagents: Vec<_> = self.subagents.iter().map(SubagentConfig::tool_name).collect();
            let own = self.tool_names();
            let is_taken = |name: &&str| own.iter().chain(&subagents).any(|tool| tool == name);
            if let Some(name) = names.into_iter().find(is_taken) {
                return Err(format!("two tools would be named {name:?}"));
            }
        }
        Ok(())
    }

    /// Checks the number of MCP servers, but not whether they exist. The error says what is wrong.
    pub fn check_servers(&self) -> Result<(), String> {
        if self.mcp.len() > MAX_SERVERS {
            return Err(format!("the most are {MAX_SERVERS}"));
        }
        let mut names = self.mcp.iter().enumerate();
        match names.find(|(index, name)| self.mcp.iter().take(*index).any(|other| other == *name)) {
            Some((_, name)) => Err(format!("{name:?} is named twice")),
            None => Ok(()),
        }
    }

    /// Checks the number of hooks, but not their configuration. The error says what is wrong.
    pub fn check_hook_count(&self) -> Result<(), String> {
        if self.hooks.len() > MAX_HOOKS {
            return Err(format!("the most are {MAX_HOOKS}"));
        }
        Ok(())
    }

    /// Returns whether the text can name an agent.
    pub fn is_valid_name(name: &str) -> bool {
        let allowed = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_' | b'.');
        // Clients resolve `.` and `..` as path segments, even if they are escaped.
        (1..=Self::MAX_NAME_LENGTH).contains(&name.len()) && name.bytes().all(allowed) && !matches!(name, "." | "..")
    }
}
