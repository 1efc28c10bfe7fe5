//! Plans a run: makes all checks that may refuse a request, before anything is written. `start.rs`
//! and `accept.rs` check slots, the queue and conflicts with other runs.
//!
//! A budget in the request can tighten the agent's budget, never loosen it. `inherited.rs` combines
//! the settings of the base, the agent and the request.

mod accepted;
mod answers;
mod base;
mod inherited;
mod input;
mod lasting;
mod overrides;

mod client_tools;
mod unpublished;

mod models;
mod team;

mod model_room;

pub(super) use self::accepted::AcceptedRequest;
pub(super) use self::answers::{accepted_pins, remembered_approvals};
pub(super) use self::base::{Base, refuse_continued};
pub(super) use self::team::{Member, Team};

use std::sync::Arc;

use self::accepted::PinnedAgents;
use self::answers::{Answered, answered};
use self::client_tools::{requested_tools, tools_of};
use self::inherited::{durability_of, environment_of};
use self::input::{counted, input_messages};
use self::lasting::LastingSettings;
use self::models::{check_prices, check_work, choose_models};
use self::overrides::{check_left_choice, check_overrides};
use self::team::TeamSearch;
use self::unpublished::check_unpublished;
use crate::run::context::RunContext;
use crate::run::read::absent_session;
use crate::run::refusal::Refusal;
use crate::run::request::{Allowance, RunRequest};
use crate::run::spend::SpendTerms;
use agent::FormatCache;
use agent::answers::ClientTool;
use agent::definition::{AgentDefinition, Durability};
use agent::model_calls::content_bytes;
use agent::prompt::MAX_PROMPT_BYTES;
use agent::record::{RunStatus, RunSummary};
use agent::state::ExecutionBudget;
use store::agents::AgentRecord;
use store::queue::{IfBusy, NewAnswer};
use values::ids::{AgentId, RunId, SessionId};
use values::message::Message;
use values::session::{Bundle, EnvironmentState, check_history};
use values::tenant::TenantId;
use values::usage::Usage;

/// More bytes than a token of any text has.
const BYTES_PER_TOKEN: u64 = 16;

/// A run that may begin.
#[derive(Debug)]
pub(super) struct RunPlan {
    pub(super) tenant: TenantId,
    /// The request, with the webhook and the durability that apply, its messages, and the versions
    /// of the agents. The queue stores it.
    pub(super) accepted: AcceptedRequest,
    /// The step that the run finishes first, if its base waits for answers.
    pub(super) answered: Option<Answered>,
    pub(super) base: Base,
    /// The run's own agent.
    pub(super) lead: Arc<Member>,
    /// The agents that may be its subagents.
    pub(super) team: Arc<Team>,
    pub(super) budget: ExecutionBudget,
    /// The most steps of the run's own agent, and of each subagent.
    pub(super) step_ceiling: Option<u32>,
    pub(super) environment: EnvironmentState,
    /// The lasting settings with which the run works.
    pub(super) settings: LastingSettings,
    /// Those that it leaves to its session, if the request sets some for this run only.
    pub(super) left_settings: Option<LastingSettings>,
    /// The cache with the compiled response format.
    pub(super) formats: Arc<FormatCache>,
    pub(super) durability: Durability,
    /// The tools that the agent has in this run.
    pub(super) tools: Vec<String>,
    /// The tools that the caller executes.
    pub(super) client_tools: Arc<[ClientTool]>,
    /// Those of them that the request has, or the request whose calls it answers.
    pub(super) requested_tools: Vec<ClientTool>,
}

/// The session that a request continues.
#[derive(Debug, Clone, Copy)]
struct Continued {
    /// `None` for a new line of sessions.
    session_id: Option<SessionId>,
    /// Whether the run will continue a later session that does not exist yet, so that its open
    /// calls are not known.
    is_awaited: bool,
}

impl RunPlan {
    /// Returns the request, without its input.
    pub(super) fn request(&self) -> &RunRequest {
        &self.accepted.request
    }

    /// Returns whether the run goes into the queue. A run that answers open calls does, even if all
    /// calls have expired: the transaction that accepts it also marks the calls as answered. If it
    /// publishes nothing, the calls stay open.
    pub(super) fn is_queued(&self) -> bool {
        let request = self.request();
        let marks_answered = request.publish && self.answered.is_some();
        request.asks_for_queue() || self.durability == Durability::Step || marks_answered
    }

    /// Returns what the run asks of limits of spending.
    pub(super) fn spend_terms(&self) -> SpendTerms<'_> {
        let input: u64 = self
            .accepted
            .input
            .iter()
            .map(|message| content_bytes(&message.content))
            .sum();
        let price = self.lead.models.preferred().price;
        let least = price.map(|price| price.least_input_cost(input / BYTES_PER_TOKEN) + price.cost_of_tokens(0, 1));
        SpendTerms {
            tenant: &self.tenant,
            key: &self.request().limits,
            least: least.unwrap_or_default(),
            most: self.budget.max_cost,
        }
    }

    /// Returns the run whose open calls the run answers.
    pub(super) fn answer(&self) -> Option<NewAnswer> {
        let request = self.request();
        Some(NewAnswer {
            run_id: self.answered.as_ref()?.run_id?,
            is_fork: request.answers.is_fork || request.if_busy == IfBusy::Fork,
        })
    }
}

/// Resolves everything that the request names, and checks it.
pub(super) async fn plan(ctx: &RunContext, tenant: &TenantId, mut request: RunRequest) -> Result<RunPlan, Refusal> {
    ctx.agents.check_webhook(tenant, request.webhook.as_ref())?;
    let (now, input) = (ctx.clock.now(), std::mem::take(&mut request.input));
    let input = input_messages(input, !request.answers.is_empty(), &*ctx.ids, now)?;
    request.answers.accepted_at = Some(now);
    let mut continued = Continued {
        session_id: request.base_session_id,
        is_awaited: false,
    };
    if let Some(from) = request.thread_from {
        continued.session_id = from.session_id;
    } else if let Some(thread) = &request.thread {
        let position = ctx.store.thread_start(tenant, thread).await?;
        continued.session_id = position.session_id;
        // The session that the run will continue may not exist yet, but its agent is known.
        if request.if_busy != IfBusy::Fork {
            // Answers are about calls that the caller has seen, so about none of that session.
            let names_calls = !request.answers.answers.is_empty() || request.base_session_id.is_some();
            continued.is_awaited = position.agent_ahead.is_some() && !names_calls;
            request.agent = request.agent.or(position.agent_ahead);
        }
    }
    plan_with(ctx, tenant, request, input, None, continued).await
}

/// Plans an accepted run again, with the same versions of its agents. The record has the base and
/// the durability.
pub(super) async fn plan_again(
    ctx: &RunContext,
    tenant: &TenantId,
    accepted: AcceptedRequest,
    base: Option<SessionId>,
    durability: Durability,
) -> Result<RunPlan, Refusal> {
    let AcceptedRequest {
        mut request,
        input,
        pinned,
        ..
    } = accepted;
    request.durability = Some(durability.into());
    let continued = Continued {
        session_id: base,
        is_awaited: false,
    };
    plan_with(ctx, tenant, request, input.to_vec(), Some(pinned), continued).await
}

async fn plan_with(
    ctx: &RunContext,
    tenant: &TenantId,
    request: RunRequest,
    input: Vec<Message>,
    pinned: Option<PinnedAgents>,
    continued: Continued,
) -> Result<RunPlan, Refusal> {
    let limits = Arc::clone(ctx.limits.of(tenant));
    let allowance = Allowance::new(&limits, &request.limits);
    let base = find_base(ctx, tenant, &request, continued).await?;
    let bundle = base.bundle();
    let agent = find_agent(ctx, tenant, &request, &base, pinned.as_ref(), &allowance).await?;
    let session_model = bundle.and_then(|bundle| bundle.context.model.clone());
    let model = request.model.clone().or(session_model);
    let models = choose_models(ctx, tenant, model, &agent.definition)?;
    check_work(ctx, &allowance, &agent.definition, &models)?;
    // An accepted run is not refused if a ceiling was lowered since. The new ceiling applies to it.
    if pinned.is_none() {
        allowance.check_budget(&request.budget)?;
    }
    let budget = find_budget(ctx, &request, &agent.definition, &allowance)?;
    let step_ceiling = allowance.ceiling().max_steps;
    if budget.max_cost.is_some() {
        check_prices(&agent.definition, &models)?;
    }
    let settings = LastingSettings::of_run(bundle, &agent.definition, &request)?;
    let left_settings = LastingSettings::of_session(bundle, &agent.definition, &request)?;
    let requested_tools = requested_tools(tenant, bundle, &agent.definition, &request).await?;
    let (changes, overrides, servers) = (&request.overrides, settings.overrides.as_deref(), &*ctx.servers);
    check_overrides(tenant, &agent.definition, servers, changes, overrides, &requested_tools).await?;
    check_left(&request, &agent.definition, left_settings.as_ref().unwrap_or(&settings))?;
    check_instructions(request.instructions.as_deref())?;
    let (tools, client_tools) = tools_of(&agent.definition, overrides, &requested_tools);
    let executor = ctx.tools.executor(&tools)?;
    let durability = durability_of(&request, &agent.definition, &tools, &*executor);
    let search = TeamSearch {
        ctx,
        tenant,
        pinned: pinned.as_ref(),
        allowance: &allowance,
    };
    let team = search.gather(&agent.definition, &budget).await?;
    let environment = find_environment(ctx, tenant, &request, bundle).await?;
    let formats = Arc::new(FormatCache::default());
    formats.compiled(tenant, &settings.response_format).await?;
    let answered = if continued.is_awaited || matches!(base, Base::Unreadable(..)) {
        None
    } else {
        answered(tenant, bundle, &request.answers, !input.is_empty(), ctx.clock.now()).await?
    };
    check_unpublished(&request, answered.is_some())?;
    let added = answered.as_ref().map_or(0, |answered| answered.step.bytes());
    let input = check_room(ctx, tenant, bundle, input, added).await?.into();
    let pinned = PinnedAgents {
        agent: agent.version,
        agent_id: pinned.map_or_else(|| AgentId::generate(&*ctx.ids), |pinned| pinned.agent_id),
        team: team.versions(),
    };
    let request = RunRequest {
        webhook: request.webhook.or_else(|| agent.definition.webhook.clone()),
        durability: Some(durability.into()),
        ..request
    };
    Ok(RunPlan {
        tenant: tenant.clone(),
        accepted: AcceptedRequest::new(request, input, pinned, &agent.definition),
        answered,
        base,
        lead: Arc::new(Member {
            agent: agent.definition,
            agent_version: agent.version,
            models,
        }),
        team: Arc::new(team),
        budget,
        step_ceiling,
        environment,
        settings,
        left_settings,
        formats,
        durability,
        tools,
        client_tools,
        requested_tools,
    })
}

/// Returns the limits of the request and its agent, or else of the service, below the ceiling.
fn find_budget(
    ctx: &RunContext,
    request: &RunRequest,
    agent: &AgentDefinition,
    allowance: &Allowance<'_>,
) -> Result<ExecutionBudget, Refusal> {
    let asked = request.budget.clone();
    asked.check().map_err(|fault| Refusal::within("budget", fault))?;
    let budget = asked.tightest(&agent.budget).or(&ctx.settings.budget);
    Ok(budget.tightest(&allowance.ceiling()))
}

/// Creates the record of a new run, with new ids.
pub(super) fn begun_summary(ctx: &RunContext, plan: &RunPlan, status: RunStatus) -> RunSummary {
    let (now, request) = (ctx.clock.now(), plan.request());
    let is_running = status == RunStatus::Running;
    RunSummary {
        run_id: RunId::generate(&*ctx.ids),
        session_id: SessionId::generate(&*ctx.ids),
        publishes: request.publish,
        base_session_id: plan.base.session_id(),
        agent: plan.lead.agent.name.clone(),
        agent_version: Some(plan.lead.agent_version),
        model: plan.lead.models.preferred().model_ref.clone(),
        answered_by: None,
        mode: request.mode,
        durability: plan.durability,
        thread: request.thread.clone(),
        thread_moved: None,
        attempts: u32::from(is_running),
        status,
        answer_run_id: None,
        stop_reason: None,
        usage: Usage::NOTHING,
        step_count: 0,
        event_count: 0,
        error: None,
        metadata: request.metadata.value().cloned().unwrap_or_default(),
        created_by: request.created_by.clone(),
        created_at: now,
        started_at: is_running.then_some(now),
        completed_at: None,
    }
}

/// Refuses a run whose base and input together exceed the limit of a session. `added` are the bytes
/// of the step that it finishes. Returns the input, since another thread may count it.
async fn check_room(
    ctx: &RunContext,
    tenant: &TenantId,
    base: Option<&Arc<Bundle>>,
    input: Vec<Message>,
    added: usize,
) -> Result<Vec<Message>, Refusal> {
    let (bytes, input) = counted(tenant, input).await;
    let inherited = base.map_or(0, |bundle| bundle.history.bytes());
    let checked = check_history(inherited + bytes + added, ctx.sessions.max_part_bytes());
    checked.map(|()| input).map_err(Refusal::SessionTooLarge)
}

async fn find_agent(
    ctx: &RunContext,
    tenant: &TenantId,
    request: &RunRequest,
    base: &Base,
    pinned: Option<&PinnedAgents>,
    allowance: &Allowance<'_>,
) -> Result<AgentRecord, Refusal> {
    let agents = &ctx.agents;
    if let Some(pinned) = pinned {
        return agents.version(tenant, pinned.agent).await;
    }
    let name = match &request.agent {
        Some(name) => name.clone(),
        None => base_agent(ctx, tenant, base).await,
    };
    match agents.resolve(tenant, &name).await {
        Err(Refusal::UnknownAgent { name, .. }) => {
            let may_use = |other: &str| allowance.check_agent(other).is_ok();
            let similar = agents.similar(tenant, &name, may_use).await?;
            Err(Refusal::UnknownAgent { name, similar })
        }
        found => found,
    }
}

/// Reads the base. Refuses a request whose base differs from the session of its thread.
async fn find_base(
    ctx: &RunContext,
    tenant: &TenantId,
    request: &RunRequest,
    continued: Continued,
) -> Result<Base, Refusal> {
    let Continued { session_id, is_awaited } = continued;
    if let Some(answered) = request.base_session_id
        && Some(answered) != session_id
        && !is_awaited
    {
        return Err(Refusal::ThreadMovedOn { answered, session_id });
    }
    let Some(session_id) = session_id else {
        return Ok(Base::None);
    };
    match ctx.sessions.bundle(tenant, session_id).await {
        Ok(Some(bundle)) => Ok(Base::Bundle(bundle)),
        Ok(None) => Err(absent_session(ctx, tenant, session_id).await),
        Err(error) => Ok(Base::Unreadable(session_id, error)),
    }
}

/// Returns the environment with which the run begins: the environment of the session that the
/// request names, or else of the base, with the variables of the request.
async fn find_environment(
    ctx: &RunContext,
    tenant: &TenantId,
    request: &RunRequest,
    base: Option<&Arc<Bundle>>,
) -> Result<EnvironmentState, Refusal> {
    let variables = request.variables.clone();
    let Some(session_id) = request.environment_from else {
        return environment_of(base.map(|bundle| &**bundle), variables);
    };
    match ctx.store.states_load(tenant, session_id).await? {
        Some(states) => environment_of(Some(&states), variables),
        None => Err(absent_session(ctx, tenant, session_id).await),
    }
}

/// Returns the agent of the base. Reads only its head if the rest of the session is unreadable.
async fn base_agent(ctx: &RunContext, tenant: &TenantId, base: &Base) -> String {
    let known = match base {
        Base::None => None,
        Base::Bundle(bundle) => Some(bundle.head.agent.clone()),
        Base::Unreadable(session_id, _) => {
            let head = ctx.store.session_lookup(tenant, *session_id).await;
            head.ok().flatten().map(|head| head.agent)
        }
    };
    known.unwrap_or_else(|| ctx.settings.default_agent.clone())
}

/// Checks the settings that a run leaves to its session, if it publishes one.
fn check_left(request: &RunRequest, agent: &AgentDefinition, left: &LastingSettings) -> Result<(), Refusal> {
    if !request.publish {
        return Ok(());
    }
    check_left_choice(agent, left.overrides.as_deref())
}

/// Checks the text that a request adds to the system prompt.
fn check_instructions(text: Option<&str>) -> Result<(), Refusal> {
    if text.is_none_or(|text| text.len() <= MAX_PROMPT_BYTES) {
        return Ok(());
    }
    let message = format!("it has more than {MAX_PROMPT_BYTES} bytes");
    Err(Refusal::invalid("instructions", message))
}
