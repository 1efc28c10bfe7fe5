//! Plans a run: refuses everything that can be refused, before anything is written.
//!
//! A budget in the request can tighten the agent's budget, never loosen it. `inherited.rs` combines
//! the settings of the base, the agent and the request.

use std::sync::Arc;

use super::agents::AgentDirectory;
use super::answers::{Answered, answered};
use super::base::Base;
use super::error::Refusal;
use super::inherited::{durability_of, environment_of, response_format_of, session_metadata_of};
use super::input::{counted, input_messages};
use super::limits::Allowance;
use super::models::{ModelSelection, check_prices};
use super::overrides::overrides_of;
use super::queue::{AcceptedRequest, PinnedAgents};
use super::read::RunReader;
use super::request::{InputMessage, RunRequest};
use super::subagents::{Team, TeamSearch};
use agent::drivers::ModelChain;
use agent::ports::{ToolCatalog, ToolServers};
use agent::record::{RunStatus, RunSummary};
use agent::state::ExecutionBudget;
use agent::{AgentDefinition, ClientTool, Durability, FormatCache};
use store::agents::AgentRecord;
use store::queue::{IfBusy, NewAnswer};
use store::{Sessions, Store};
use values::clock::Clock;
use values::ids::{AgentId, IdSource, RunId, SessionId};
use values::json::Object;
use values::limits::Limits;
use values::message::Message;
use values::model_ref::ResponseFormat;
use values::session::{Bundle, EnvironmentState, Hash, Overrides, check_history};
use values::tenant::TenantId;
use values::usage::Usage;

/// A run that may begin.
#[derive(Debug)]
pub(super) struct RunPlan {
    pub(super) tenant: TenantId,
    /// The request without the input, and with the webhook that applies.
    pub(super) request: RunRequest,
    pub(super) input: Vec<Message>,
    /// The step that the run finishes first, if its base waits for answers.
    pub(super) answered: Option<Answered>,
    pub(super) base: Base,
    pub(super) agent: Arc<AgentDefinition>,
    pub(super) agent_version: Hash,
    pub(super) models: ModelChain,
    /// The agents that may be its subagents.
    pub(super) team: Arc<Team>,
    pub(super) budget: ExecutionBudget,
    /// The most steps of the run's own agent, and of each subagent.
    pub(super) step_ceiling: Option<u32>,
    pub(super) environment: EnvironmentState,
    pub(super) session_metadata: Object,
    pub(super) response_format: ResponseFormat,
    /// The cache with the compiled response format.
    pub(super) formats: Arc<FormatCache>,
    pub(super) durability: Durability,
    /// The settings of the session that override the agent's definition.
    pub(super) overrides: Option<Arc<Overrides>>,
    /// The tools that the agent has in this run.
    pub(super) tools: Vec<String>,
    /// The tools that the caller executes.
    pub(super) client_tools: Arc<[ClientTool]>,
    /// The agent instance of a new line of sessions.
    pub(super) new_agent_id: AgentId,
}

/// The input of a plan.
#[derive(Debug)]
enum Input {
    /// As the caller sent it.
    Asked(AskedInput),
    /// With the ids assigned when the run was accepted.
    Accepted(Vec<Message>),
}

impl Input {
    fn has_messages(&self) -> bool {
        match self {
            Self::Asked(input) => !input.messages.is_empty(),
            Self::Accepted(messages) => !messages.is_empty(),
        }
    }

    /// Returns whether the session that the run will continue does not exist yet.
    fn precedes_session(&self) -> bool {
        matches!(
            self,
            Self::Asked(AskedInput {
                precedes_session: true,
                ..
            })
        )
    }
}

/// The input of a new request.
#[derive(Debug)]
struct AskedInput {
    messages: Vec<InputMessage>,
    /// Whether the session that the run will continue does not exist yet, so that nobody knows
    /// whether it has open calls.
    precedes_session: bool,
}

/// Plans runs.
#[derive(Debug)]
pub struct Planner {
    /// Reads bundles, through a cache.
    pub sessions: Arc<Sessions>,
    /// Reads threads, and heads of sessions.
    pub store: Arc<dyn Store>,
    /// Finds the reason why a session does not exist.
    pub reader: Arc<RunReader>,
    /// Finds agents.
    pub agents: Arc<AgentDirectory>,
    /// Finds models.
    pub models: ModelSelection,
    /// Finds tools.
    pub tools: Arc<dyn ToolCatalog>,
    /// Finds MCP servers.
    pub servers: Arc<dyn ToolServers>,
    /// The limits of tenants.
    pub limits: Arc<Limits>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Creates ids.
    pub ids: Arc<dyn IdSource>,
    /// The agent of a request that names none and continues nothing.
    pub default_agent: String,
    /// The limits that apply if neither the request nor the agent sets one.
    pub budget: ExecutionBudget,
}

impl RunPlan {
    /// Returns the input of the plan, so that a worker can plan the run again.
    pub(super) fn accepted_request(&self) -> AcceptedRequest {
        AcceptedRequest {
            request: self.request.clone(),
            input: self.input.clone(),
            pinned: PinnedAgents {
                agent: Some(self.agent_version),
                agent_id: Some(self.new_agent_id),
                team: self.team.versions(),
            },
        }
    }

    /// Returns whether the run goes into the queue. A run that answers open calls does, also one
    /// whose base has expired calls only: it is accepted in the transaction that marks the calls as
    /// answered.
    pub(super) fn is_queued(&self) -> bool {
        self.request.asks_for_queue() || self.durability == Durability::Step || self.answered.is_some()
    }

    /// Returns the run whose open calls the run answers.
    pub(super) fn answer(&self) -> Option<NewAnswer> {
        Some(NewAnswer {
            run_id: self.answered.as_ref()?.run_id?,
            is_fork: self.request.answers.is_fork || self.request.if_busy == IfBusy::Fork,
        })
    }
}

impl Planner {
    /// Resolves everything that the request names, and checks it.
    pub(super) async fn plan(&self, tenant: &TenantId, mut request: RunRequest) -> Result<RunPlan, Refusal> {
        self.agents.check_webhook(tenant, request.webhook.as_ref())?;
        let mut input = AskedInput {
            messages: std::mem::take(&mut request.input),
            precedes_session: false,
        };
        request.answers.accepted_at = Some(self.clock.now());
        let base = match &request.thread {
            Some(thread) => {
                let position = self.store.thread_start(tenant, thread).await?;
                // The session that it will continue does not exist yet, but its agent is known.
                if request.if_busy != IfBusy::Fork {
                    // Answers are about calls that the caller has seen, so about none of that
                    // session.
                    let names_calls = !request.answers.answers.is_empty() || request.base_session_id.is_some();
                    input.precedes_session = position.agent_ahead.is_some() && !names_calls;
                    request.agent = request.agent.or(position.agent_ahead);
                }
                position.session_id
            }
            None => request.base_session_id,
        };
        let input = Input::Asked(input);
        self.plan_with(tenant, request, input, base, &PinnedAgents::default())
            .await
    }

    /// Plans an accepted run again, with the same versions of its agents. The record has the base
    /// and the durability.
    pub(super) async fn plan_again(
        &self,
        tenant: &TenantId,
        accepted: AcceptedRequest,
        base: Option<SessionId>,
        durability: Durability,
    ) -> Result<RunPlan, Refusal> {
        let AcceptedRequest {
            mut request,
            input,
            pinned,
        } = accepted;
        request.durability = Some(durability.into());
        self.plan_with(tenant, request, Input::Accepted(input), base, &pinned)
            .await
    }

    async fn plan_with(
        &self,
        tenant: &TenantId,
        mut request: RunRequest,
        input: Input,
        base: Option<SessionId>,
        pinned: &PinnedAgents,
    ) -> Result<RunPlan, Refusal> {
        let limits = Arc::clone(self.limits.of(tenant));
        let allowance = Allowance::new(&limits.runs, &request.limits);
        let base = self.find_base(tenant, &request, &input, base).await?;
        let bundle = base.bundle();
        let agent = self
            .find_agent(tenant, request.agent.as_ref(), &base, pinned, &allowance)
            .await?;
        let of_session = bundle.and_then(|bundle| bundle.context.model.clone());
        let models = self
            .models
            .choose(tenant, request.model.clone().or(of_session), &agent.definition)?;
        self.models.check_work(&allowance, &agent.definition, &models)?;
        request
            .budget
            .check()
            .map_err(|fault| Refusal::within("budget", fault))?;
        // An accepted run is not refused if a ceiling was lowered since. The new ceiling applies to
        // it.
        if let Input::Asked(_) = input {
            allowance.check_budget(&request.budget)?;
        }
        let ceiling = allowance.ceiling();
        let budget = request
            .budget
            .clone()
            .tightest(&agent.definition.budget)
            .or(&self.budget)
            .tightest(&ceiling);
        if budget.max_cost.is_some() {
            check_prices(&agent.definition, &models)?;
        }
        let changes = &request.overrides;
        let overrides = overrides_of(tenant, bundle, &agent.definition, &*self.servers, changes).await?;
        let (tools, client_tools) = tools_of(&agent.definition, overrides.as_deref());
        let executor = self.tools.executor(&tools)?;
        let durability = durability_of(&request, &agent.definition, &tools, &*executor);
        let search = TeamSearch {
            tenant,
            agents: &self.agents,
            models: &self.models,
            pinned,
            allowance: &allowance,
        };
        let team = search.gather(&agent.definition, &budget).await?;
        let environment = self.find_environment(tenant, &request, bundle).await?;
        let session_metadata = session_metadata_of(bundle, &agent.definition, &request.metadata)?;
        let response_format = response_format_of(bundle, &agent.definition, request.response_format.clone());
        let formats = Arc::new(FormatCache::default());
        formats.compiled(tenant, &response_format).await?;
        let answered = self.find_answered(tenant, &request, &input, &base).await?;
        let added = answered.as_ref().map_or(0, |answered| answered.step.bytes());
        let input = self.messages_of(input, !request.answers.is_empty())?;
        let input = self.check_room(tenant, bundle, input, added).await?;
        let webhook = request.webhook.take().or_else(|| agent.definition.webhook.clone());
        Ok(RunPlan {
            tenant: tenant.clone(),
            models,
            team: Arc::new(team),
            input,
            answered,
            client_tools,
            base,
            new_agent_id: pinned.agent_id.unwrap_or_else(|| AgentId::generate(&*self.ids)),
            durability,
            agent: agent.definition,
            agent_version: agent.version,
            budget,
            step_ceiling: ceiling.max_steps,
            environment,
            session_metadata,
            response_format,
            formats,
            overrides,
            tools,
            request: RunRequest {
                webhook,
                durability: Some(durability.into()),
                ..request
            },
        })
    }

    /// Creates the record of a new run, with new ids.
    pub(super) fn begun_summary(&self, plan: &RunPlan, status: RunStatus) -> RunSummary {
        let now = self.clock.now();
        let is_running = status == RunStatus::Running;
        RunSummary {
            run_id: RunId::generate(&*self.ids),
            session_id: SessionId::generate(&*self.ids),
            base_session_id: plan.base.session_id(),
            agent: plan.agent.name.clone(),
            agent_version: Some(plan.agent_version),
            model: plan.models.preferred().model_ref.clone(),
            answered_by: None,
            mode: plan.request.mode,
            durability: plan.durability,
            thread: plan.request.thread.clone(),
            thread_moved: None,
            attempts: u32::from(is_running),
            status,
            answer_run_id: None,
            stop_reason: None,
            usage: Usage::NOTHING,
            step_count: 0,
            event_count: 0,
            error: None,
            metadata: plan.request.metadata.clone(),
            created_at: now,
            started_at: is_running.then_some(now),
            completed_at: None,
        }
    }

    fn messages_of(&self, input: Input, is_optional: bool) -> Result<Vec<Message>, Refusal> {
        match input {
            Input::Asked(input) => input_messages(input.messages, is_optional, &*self.ids, self.clock.now()),
            Input::Accepted(messages) => Ok(messages),
        }
    }

    /// Returns the step that the run finishes first, if its base waits for answers.
    async fn find_answered(
        &self,
        tenant: &TenantId,
        request: &RunRequest,
        input: &Input,
        base: &Base,
    ) -> Result<Option<Answered>, Refusal> {
        match (input, base) {
            (input, _) if input.precedes_session() => Ok(None),
            (_, Base::Unreadable(..)) => Ok(None),
            _ => {
                let now = self.clock.now();
                answered(tenant, base.bundle(), &request.answers, input.has_messages(), now).await
            }
        }
    }

    /// Refuses a run whose base and input together exceed the limit of a session. Returns the
    /// input, since another thread may count it.
    async fn check_room(
        &self,
        tenant: &TenantId,
        base: Option<&Arc<Bundle>>,
        input: Vec<Message>,
        of_answers: usize,
    ) -> Result<Vec<Message>, Refusal> {
        let (of_input, input) = counted(tenant, input).await;
        let added = of_input + of_answers;
        let inherited = base.map_or(0, |bundle| bundle.history.bytes());
        let checked = check_history(inherited + added, self.sessions.max_part_bytes());
        checked.map(|()| input).map_err(Refusal::SessionTooLarge)
    }

    async fn find_agent(
        &self,
        tenant: &TenantId,
        asked: Option<&String>,
        base: &Base,
        pinned: &PinnedAgents,
        allowance: &Allowance<'_>,
    ) -> Result<AgentRecord, Refusal> {
        if let Some(version) = pinned.agent {
            return self.agents.version(tenant, version).await;
        }
        let name = match asked {
            Some(name) => name.clone(),
            None => self.agent_of_base(tenant, base).await,
        };
        let agents = &self.agents;
        match agents.resolve(tenant, &name).await {
            Err(Refusal::UnknownAgent { name, .. }) => {
                let may_use = |other: &str| allowance.check_agent(other).is_ok();
                let similar = agents.similar(tenant, &name, may_use).await?;
                Err(Refusal::UnknownAgent { name, similar })
            }
            found => found,
        }
    }

    /// Reads the base. Refuses a request for another session than that of its thread.
    async fn find_base(
        &self,
        tenant: &TenantId,
        request: &RunRequest,
        input: &Input,
        session_id: Option<SessionId>,
    ) -> Result<Base, Refusal> {
        if let Some(answered) = request.base_session_id
            && Some(answered) != session_id
            && !input.precedes_session()
        {
            return Err(Refusal::ThreadMovedOn { answered, session_id });
        }
        let Some(session_id) = session_id else {
            return Ok(Base::None);
        };
        match self.sessions.bundle(tenant, session_id).await {
            Ok(Some(bundle)) => Ok(Base::Bundle(bundle)),
            Ok(None) => Err(self.reader.absent_session(tenant, session_id).await),
            Err(error) => Ok(Base::Unreadable(session_id, error)),
        }
    }

    /// Returns the environment with which the run begins: that of the session that the request
    /// names, or else of the base, with the variables of the request.
    async fn find_environment(
        &self,
        tenant: &TenantId,
        request: &RunRequest,
        base: Option<&Arc<Bundle>>,
    ) -> Result<EnvironmentState, Refusal> {
        let variables = request.variables.clone();
        let Some(session_id) = request.environment_from else {
            return environment_of(base.map(|bundle| &**bundle), variables);
        };
        match self.store.states_load(tenant, session_id).await? {
            Some(states) => environment_of(Some(&states), variables),
            None => Err(self.reader.absent_session(tenant, session_id).await),
        }
    }

    /// Returns the agent of the base. Reads only its head if the rest of the session is unreadable.
    async fn agent_of_base(&self, tenant: &TenantId, base: &Base) -> String {
        let of_base = match base {
            Base::None => None,
            Base::Bundle(bundle) => Some(bundle.head.agent.clone()),
            Base::Unreadable(session_id, _) => {
                let head = self.store.session_lookup(tenant, *session_id).await;
                head.ok().flatten().map(|head| head.agent)
            }
        };
        of_base.unwrap_or_else(|| self.default_agent.clone())
    }
}

/// Returns the names of the service's tools that the agent has in a session, and its client tools.
fn tools_of(agent: &AgentDefinition, overrides: Option<&Overrides>) -> (Vec<String>, Arc<[ClientTool]>) {
    let all = agent.tool_names();
    let names = overrides.map_or_else(|| all.clone(), |overrides| overrides.tools_of(&all));
    let tools = agent.tools.iter().filter(|tool| names.contains(tool));
    let client_tools = agent.client_tools.iter().filter(|tool| names.contains(&tool.name));
    (tools.cloned().collect(), client_tools.cloned().collect())
}
