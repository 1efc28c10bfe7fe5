//! Import: creates a session from given states, without a run.

use std::sync::Arc;

use serde::Deserialize;

use super::context::{RunContext, claim_key};
use super::files::open_tree;
use super::refusal::Refusal;
use super::request::{Allowance, RequestKey};
use agent::FormatCache;
use agent::prompt::check_prompt;
use agent::record::ThreadName;
use store::CommitError;
use store::sessions::{Commit, ConflictPolicy, ThreadMove};
use tasks::off_thread::off_thread;
use values::causes::with_causes;
use values::clock::Timestamp;
use values::ids::{AgentId, BranchId, SessionId};
use values::json::{Object, Unread, Value};
use values::limits::RunLimits;
use values::message::Message;
use values::model_ref::{ModelRef, ResponseFormat};
use values::session::{
    Bundle, BundleDraft, ContextState, EnvironmentState, History, Overrides, StoredContext, ToolPins,
    find_history_fault, find_history_start,
};
use values::tenant::TenantId;
use workspace::{ContentsError, TreeError};

/// The field that names the files.
const TREE: &str = "environment_state.workspace.tree";

/// A request to import a session.
#[derive(Debug, Clone)]
pub struct ImportRequest {
    /// The agent that continues the session; by default the configured one.
    pub agent: Option<String>,
    /// Variables and resources.
    pub environment: EnvironmentState,
    /// The agent's session data.
    pub context: ImportContext,
    /// The history.
    pub messages: Vec<Message>,
    /// The thread to move to the session, which must point to no session yet.
    pub thread: Option<ThreadName>,
    /// The idempotency key of the request.
    pub idempotency: Option<RequestKey>,
}

/// An imported session.
#[derive(Debug)]
pub struct Imported {
    /// The session with all its messages.
    pub bundle: Bundle,
    /// Whether an earlier request with the same key created it.
    pub is_replay: bool,
}

/// A context whose every field may be absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ImportContext {
    /// The id of the agent instance; by default a new one.
    pub agent_id: Option<AgentId>,
    /// The agent that started this one.
    pub parent_agent_id: Option<AgentId>,
    /// When the agent's state was first created; by default now.
    pub created_at: Option<Timestamp>,
    /// The model that the session uses instead of its agent's.
    pub model: Option<ModelRef>,
    /// The system prompt of the conversation.
    pub system_prompt: String,
    /// The format of final responses.
    pub response_format: ResponseFormat,
    /// The settings of the session that override its agent's definition.
    pub overrides: Overrides,
    /// Key-value pairs.
    pub metadata: Object,
    /// How many executions the agent has had.
    pub execution_count: u64,
    /// When it last changed; by default now.
    pub updated_at: Option<Timestamp>,
    /// The open step of a waiting session, which can't be imported.
    pub waiting: Option<Value>,
    /// Remembered approvals, which can't be imported.
    pub remembered_approvals: Vec<Value>,
    /// The accepted definitions of tools of servers.
    pub tool_pins: ToolPins,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub other: Object,
}

/// Publishes a session with the given states.
///
/// First reserves the session's id under the request's key. So a repeated request finds the
/// session, or creates it if the first request did not.
pub async fn import_session(ctx: &RunContext, tenant: TenantId, request: ImportRequest) -> Result<Imported, Refusal> {
    let new_id = SessionId::generate(&*ctx.ids);
    let key = request.idempotency.as_ref();
    let reserved = claim_key(ctx, &tenant, key, new_id.as_uuid()).await?;
    let session_id = reserved.map_or(new_id, SessionId::from_uuid);
    if reserved.is_some()
        && let Some(imported) = imported_before(ctx, &tenant, session_id).await?
    {
        return Ok(imported);
    }
    let thread = request.thread.clone();
    let draft = import_draft(ctx, &tenant, session_id, request).await?;
    let history = draft.history.clone();
    let commit = Commit {
        tenant,
        draft,
        run: None,
        thread: thread.map(|name| ThreadMove { name, from: None }),
        conflict: ConflictPolicy::Fork,
        children: Vec::new(),
        environment_from: None,
    };
    match ctx.sessions.commit(&commit).await {
        Ok(published) => {
            let moved = commit.thread.as_ref().map(|thread| &thread.name);
            ctx.publish_session(&commit.tenant, session_id, moved);
            Ok(Imported {
                bundle: Bundle {
                    history,
                    ..(*published).clone()
                },
                is_replay: false,
            })
        }
        Err(CommitError::Store(error)) => Err(error.into()),
        Err(CommitError::TooLarge(error)) => Err(Refusal::SessionTooLarge(error)),
        Err(CommitError::ThreadMoved { name }) => Err(Refusal::ThreadMoved { name }),
        Err(CommitError::ThreadBusy { name, run_id }) => Err(Refusal::ThreadAtWork { name, run_id }),
        // A concurrent copy of the same request was faster. There is no other cause, since an
        // import has no base.
        Err(
            CommitError::Exists
            | CommitError::Conflict { .. }
            | CommitError::LeaseLost
            | CommitError::MissingBase
            | CommitError::MissingEnvironment,
        ) => {
            let imported = imported_before(ctx, &commit.tenant, session_id).await?;
            imported.ok_or(Refusal::Conflict { run_id: None })
        }
    }
}

async fn imported_before(
    ctx: &RunContext,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<Imported>, Refusal> {
    let bundle = ctx.sessions.whole_bundle(tenant, session_id).await?;
    Ok(bundle.map(|bundle| Imported {
        bundle: (*bundle).clone(),
        is_replay: true,
    }))
}

/// Checks the states and creates a draft of the session.
async fn import_draft(
    ctx: &RunContext,
    tenant: &TenantId,
    session_id: SessionId,
    request: ImportRequest,
) -> Result<BundleDraft, Refusal> {
    let name = request.agent.as_deref().unwrap_or(&ctx.settings.default_agent);
    let agent = ctx.agents.resolve(tenant, name).await?;
    check_no_answers(&request.context)?;
    if let Some(model) = &request.context.model {
        ctx.models.check(model)?;
        let no_key = RunLimits::default();
        let allowance = Allowance::new(ctx.limits.of(tenant), &no_key);
        allowance.check_models([model], &ctx.prices)?;
    }
    let overrides = &request.context.overrides;
    let prompts = [
        Some(request.context.system_prompt.clone()),
        overrides.system_prompt.clone(),
    ];
    for prompt in prompts.into_iter().flatten() {
        off_thread(tenant, move || check_prompt(&prompt)).await?;
    }
    FormatCache::default()
        .compiled(tenant, &request.context.response_format)
        .await?;
    let checked = overrides.check();
    checked.map_err(|(field, words)| Refusal::within("context_state.overrides", (&field, words)))?;
    check_files(ctx, tenant, &request.environment).await?;
    if let Some(fault) = find_history_fault(&request.messages) {
        return Err(Refusal::History(fault));
    }
    let history: History = request.messages.into_iter().map(Arc::new).collect();
    find_history_start(&history, 0, 0).map_err(|fault| Refusal::History(fault.into()))?;
    Ok(BundleDraft {
        session_id,
        parent: None,
        merged_session_id: None,
        environment_session_id: None,
        run_id: None,
        run_status: None,
        subagent_of: None,
        agent: agent.definition.name.clone(),
        agent_version: Some(agent.version),
        environment: Arc::new(request.environment),
        context: imported_context(ctx, request.context),
        history,
        new_branch_id: BranchId::generate(&*ctx.ids),
    })
}

/// Checks that the tree of the workspace is sound, and that the tenant has all of its files. No
/// session need have them, so they count as written now.
async fn check_files(ctx: &RunContext, tenant: &TenantId, environment: &EnvironmentState) -> Result<(), Refusal> {
    let tree = open_tree(&ctx.store, tenant, environment, ctx.workspace);
    match tree.confirm().await {
        Ok(()) => Ok(()),
        Err(TreeError::Contents(error @ (ContentsError::Unavailable(_) | ContentsError::Full { .. }))) => {
            Err(TreeError::from(error).into())
        }
        Err(TreeError::Contents(ContentsError::Missing { .. })) => Err(Refusal::invalid(
            TREE,
            "not all files of this tree are stored here".to_owned(),
        )),
        Err(error) => Err(Refusal::invalid(
            TREE,
            format!("this is no tree of files: {}", with_causes(&error)),
        )),
    }
}

fn imported_context(ctx: &RunContext, context: ImportContext) -> ContextState {
    let now = ctx.clock.now();
    ContextState {
        stored: StoredContext {
            agent_id: context.agent_id.unwrap_or_else(|| AgentId::generate(&*ctx.ids)),
            parent_agent_id: context.parent_agent_id,
            created_at: context.created_at.unwrap_or(now),
            model: context.model,
            system_prompt: context.system_prompt,
            response_format: context.response_format,
            overrides: context.overrides.into_shared(),
            waiting: None,
            remembered_approvals: Vec::new(),
            tool_pins: context.tool_pins,
            other: context.other,
            unread: Unread::default(),
        },
        metadata: context.metadata,
        execution_count: context.execution_count,
        updated_at: context.updated_at.unwrap_or(now),
    }
}
/// Refuses open calls and approvals. Callers could make up calls that no model has requested, and
/// approvals that no user has given.
fn check_no_answers(context: &ImportContext) -> Result<(), Refusal> {
    if context.waiting.is_some() {
        let message = "a session with open calls can't be imported: answer them first, or import the session before it";
        return Err(Refusal::invalid("context_state.waiting", message));
    }
    if !context.remembered_approvals.is_empty() {
        let message = "remembered approvals can't be imported: leave them out";
        return Err(Refusal::invalid("context_state.remembered_approvals", message));
    }
    Ok(())
}
