//! Planning a run: everything that can be refused is refused here, before anything is written.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::Refusal;
use super::handle::RunHandle;
use super::live::LiveEvents;
use super::models::check_prices;
use super::request::{InputMessage, OnDisconnect, RunRequest};
use super::service::RunService;
use super::subagents::Team;
use crate::agent::drivers::ModelChain;
use crate::agent::state::ExecutionBudget;
use crate::agent::{AgentDefinition, AnswerShape};
use crate::board::LiveRun;
use crate::ids::{MessageId, RunId, SessionId};
use crate::json::{Object, Value};
use crate::message::{Message, MessageTags};
use crate::model_ref::ResponseFormat;
use crate::record::{RunMode, RunStatus, RunSummary};
use crate::session::{Bundle, EnvironmentState, Hash, check_metadata, check_variables, find_history_fault};
use crate::store::{ConflictPolicy, Page, SessionFilter, StoreError};
use crate::tenant::TenantId;
use crate::usage::Usage;

/// A run that may begin.
#[derive(Debug)]
pub(super) struct RunPlan {
    pub(super) tenant: TenantId,
    pub(super) base: Base,
    pub(super) agent: Arc<AgentDefinition>,
    pub(super) agent_version: Hash,
    pub(super) models: ModelChain,
    /// The agents that may work below it.
    pub(super) team: Arc<Team>,
    pub(super) budget: ExecutionBudget,
    pub(super) input: Vec<Message>,
    pub(super) mode: RunMode,
    pub(super) metadata: Object,
    pub(super) environment: EnvironmentState,
    pub(super) session_metadata: Object,
    pub(super) response_format: ResponseFormat,
    pub(super) conflict: ConflictPolicy,
    pub(super) on_disconnect: OnDisconnect,
}

/// What a run continues.
#[derive(Debug)]
pub(super) enum Base {
    /// Nothing: it begins a line of sessions.
    None,
    /// A session.
    Bundle(Arc<Bundle>),
    /// A session that exists, or may, and can't be read: the run begins and fails, so that its failure has a record.
    Unreadable(SessionId, StoreError),
}

impl Base {
    /// Returns the session's id.
    pub(super) fn session_id(&self) -> Option<SessionId> {
        match self {
            Self::None => None,
            Self::Bundle(bundle) => Some(bundle.head.session_id),
            Self::Unreadable(session_id, _) => Some(*session_id),
        }
    }

    /// Returns the bundle.
    pub(super) fn bundle(&self) -> Option<&Arc<Bundle>> {
        match self {
            Self::Bundle(bundle) => Some(bundle),
            Self::None | Self::Unreadable(..) => None,
        }
    }
}

impl RunService {
    /// Finds everything that the request names.
    pub(super) async fn plan(&self, tenant: &TenantId, request: RunRequest) -> Result<RunPlan, Refusal> {
        let base = self.find_base(tenant, request.base_session_id).await?;
        let bundle = base.bundle();
        let name = match request.agent {
            Some(name) => name,
            None => self.agent_of_base(tenant, &base).await,
        };
        let agent = self.ports.agents.resolve(tenant, &name).await?;
        let of_session = bundle.and_then(|bundle| bundle.context.model.clone());
        let models = self.choose_models(request.model.or(of_session), &agent.definition)?;
        request.budget.check().map_err(|message| Refusal::Invalid {
            field: "budget",
            message,
        })?;
        let budget = request
            .budget
            .tightest(&agent.definition.budget)
            .or(&self.settings.budget);
        if budget.max_cost.is_some() {
            check_prices(&agent.definition, &models)?;
        }
        self.ports.tools.executor(&agent.definition.tools)?;
        let team = self.gather_team(tenant, &agent.definition, &budget).await?;
        let environment = environment_of(bundle, request.variables)?;
        let session_metadata = session_metadata_of(bundle, &agent.definition, &request.metadata)?;
        let response_format = response_format_of(bundle, &agent.definition, request.response_format);
        AnswerShape::of(&response_format)?;
        Ok(RunPlan {
            tenant: tenant.clone(),
            models,
            team: Arc::new(team),
            input: self.input_messages(request.input)?,
            base,
            agent: agent.definition,
            agent_version: agent.version,
            budget,
            mode: request.mode,
            metadata: request.metadata,
            environment,
            session_metadata,
            response_format,
            conflict: request.conflict,
            on_disconnect: request.on_disconnect,
        })
    }

    /// Reserves the ids of the run and its session, and shows the run on the board.
    pub(super) async fn open(&self, tenant: &TenantId, plan: &RunPlan) -> Result<(RunHandle, LiveEvents), Refusal> {
        let exclusive = plan.conflict == ConflictPolicy::Reject;
        if exclusive {
            self.refuse_continued(tenant, &plan.base).await?;
        }
        let now = self.ports.clock.now();
        let live = LiveRun::begun(RunSummary {
            run_id: RunId::generate(&*self.ports.ids),
            session_id: SessionId::generate(&*self.ports.ids),
            base_session_id: plan.base.session_id(),
            agent: plan.agent.name.clone(),
            agent_version: Some(plan.agent_version),
            model: plan.models.preferred().model_ref.clone(),
            mode: plan.mode,
            status: RunStatus::Running,
            stop_reason: None,
            usage: Usage::default(),
            step_count: 0,
            error: None,
            metadata: plan.metadata.clone(),
            created_at: now,
            started_at: Some(now),
            completed_at: None,
        });
        match self
            .ports
            .board
            .run_open(tenant, Arc::new(live.clone()), exclusive)
            .await
        {
            Ok(Ok(())) => (),
            Ok(Err(rival)) => return Err(Refusal::Conflict { run_id: Some(rival) }),
            Err(error) => tracing::warn!(
                error = &error as &dyn std::error::Error,
                "a run begins without being shown on the board"
            ),
        }
        let cancellation = self.cancellation.child_token();
        let (handle, follower) = RunHandle::pair(live.summary.clone(), plan.on_disconnect, cancellation.clone());
        let (board, clock) = (Arc::clone(&self.ports.board), Arc::clone(&self.ports.clock));
        Ok((
            handle,
            LiveEvents::new(tenant.clone(), live, board, clock, cancellation, follower),
        ))
    }

    async fn find_base(&self, tenant: &TenantId, session_id: Option<SessionId>) -> Result<Base, Refusal> {
        let Some(session_id) = session_id else {
            return Ok(Base::None);
        };
        match self.ports.sessions.bundle(tenant, session_id).await {
            Ok(Some(bundle)) => Ok(Base::Bundle(bundle)),
            Ok(None) => Err(match self.reserving_run(tenant, session_id).await? {
                Some(run_id) => Refusal::SessionNotCommitted { session_id, run_id },
                None => Refusal::UnknownSession { session_id },
            }),
            Err(error) => Ok(Base::Unreadable(session_id, error)),
        }
    }

    /// The head of a session may be readable when the rest of it is not.
    async fn agent_of_base(&self, tenant: &TenantId, base: &Base) -> String {
        let of_base = match base {
            Base::None => None,
            Base::Bundle(bundle) => Some(bundle.head.agent.clone()),
            Base::Unreadable(session_id, _) => {
                let head = self.ports.store.session_lookup(tenant, *session_id).await;
                head.ok().flatten().map(|head| head.agent)
            }
        };
        of_base.unwrap_or_else(|| self.settings.default_agent.clone())
    }

    async fn refuse_continued(&self, tenant: &TenantId, base: &Base) -> Result<(), Refusal> {
        let Some(parent) = base.session_id() else { return Ok(()) };
        let filter = SessionFilter {
            parent: Some(parent),
            ..SessionFilter::default()
        };
        let children = self
            .ports
            .store
            .session_list(tenant, &filter, Page { before: None, limit: 1 })
            .await?;
        children
            .first()
            .map_or(Ok(()), |child| Err(Refusal::Conflict { run_id: child.run_id }))
    }

    /// Gives the caller's messages ids and a time.
    fn input_messages(&self, input: Vec<InputMessage>) -> Result<Vec<Message>, Refusal> {
        if input.is_empty() {
            return Err(Refusal::Invalid {
                field: "input",
                message: "there is no message".to_owned(),
            });
        }
        if !input.iter().any(|message| message.section.is_messages()) {
            return Err(Refusal::Invalid {
                field: "input",
                message: "no message is in the section `messages`, so the model would not be asked anything".to_owned(),
            });
        }
        let now = self.ports.clock.now();
        let messages: Vec<Message> = input
            .into_iter()
            .map(|message| Message {
                name: message.name,
                metadata: message.metadata,
                tags: MessageTags {
                    section: message.section,
                    ..MessageTags::default()
                },
                ..Message::new(
                    MessageId::generate(&*self.ports.ids),
                    message.role,
                    message.content,
                    now,
                )
            })
            .collect();
        find_history_fault(&messages).map_or(Ok(messages), |fault| Err(Refusal::History(fault)))
    }
}

/// Sets the variables of the request in the environment of the base; what comes of it is bounded as a request is.
fn environment_of(
    bundle: Option<&Arc<Bundle>>,
    variables: BTreeMap<String, Value>,
) -> Result<EnvironmentState, Refusal> {
    let base = bundle.map(|bundle| (*bundle.environment).clone()).unwrap_or_default();
    let environment = base.with_variables(variables);
    check_variables(&environment.variables).map_err(|message| Refusal::Invalid {
        field: "variables",
        message: format!("together with those of the session, {message}"),
    })?;
    Ok(environment)
}

/// Returns the shape that the request names, or else the agent, or else the session.
fn response_format_of(
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    of_request: Option<ResponseFormat>,
) -> ResponseFormat {
    let of_agent = || (!agent.response_format.is_text()).then(|| agent.response_format.clone());
    let of_session = || bundle.map(|bundle| bundle.context.response_format.clone());
    of_request.or_else(of_agent).or_else(of_session).unwrap_or_default()
}

/// Sets the pairs of the request in the metadata of the base, or of the agent for a new line of sessions; `null` removes one.
fn session_metadata_of(
    bundle: Option<&Arc<Bundle>>,
    agent: &AgentDefinition,
    changes: &Object,
) -> Result<Object, Refusal> {
    let mut metadata = bundle.map_or_else(|| agent.metadata.clone(), |bundle| bundle.head.metadata.clone());
    metadata.extend(changes.clone());
    metadata.retain(|_, value| !value.is_null());
    check_metadata(&metadata).map_err(|message| Refusal::Invalid {
        field: "metadata",
        message: format!("together with that of the session, {message}"),
    })?;
    Ok(metadata)
}
