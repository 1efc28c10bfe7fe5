//! Restores a run: creates the state and the environment from a bundle and a plan.

use std::sync::Arc;

use super::publish::patience;
use crate::run::context::RunContext;
use crate::run::plan::{Base, RunPlan, accepted_pins, remembered_approvals};
use crate::run::work::{Failure, LiveEvents, RunJournal, WorkJournal, read_journal};
use agent::definition::Durability;
use agent::journal::{Journals as _, PersistedEnvironment, Progress, Recorder};
use agent::state::{AgentContext, AgentState, MessageStore};
use store::Store;
use store::contents::PatientContents;
use values::session::Bundle;
use values::usage::Usage;
use workspace::environment::Environment;
use workspace::{Contents, WorkspaceLimits};

/// The scope of the run's own agent in its journal.
const OWN_SCOPE: &str = "";

/// The state with which the loop begins.
#[derive(Debug)]
pub(in crate::run) struct Restored {
    pub(in crate::run) state: AgentState,
    pub(in crate::run) environment: Arc<Environment>,
    /// The usage of earlier attempts whose results are in the state.
    pub(in crate::run) reached: Usage,
    /// The usage of earlier attempts whose results are lost.
    pub(in crate::run) lost: Usage,
    /// The progress of an earlier worker.
    pub(in crate::run) progress: Option<Progress>,
    /// The journal that records the progress of this worker.
    pub(in crate::run) journal: Option<WorkJournal>,
}

/// Restores the state and the environment.
pub(in crate::run) async fn restore(
    ctx: &RunContext,
    plan: &RunPlan,
    live: &Arc<LiveEvents>,
) -> Result<Restored, Failure> {
    let bundle = match &plan.base {
        Base::None => None,
        Base::Bundle(bundle) => Some(bundle),
        Base::Unreadable(_, error) => return Err(Failure::load(error)),
    };
    let state = restore_state(plan, live, bundle);
    let resumed = restore_progress(&ctx.store, plan, live, &state).await?;
    let persisted = resumed.as_ref().and_then(Resumed::environment);
    let patience = patience(ctx, &live.active);
    // No longer than until the run is cancelled or another worker may have it.
    let active = Arc::clone(&live.active);
    let goes_on = move || !active.cancellation.is_cancelled() && !active.is_lost();
    let contents = PatientContents::new(
        &live.active.tenant,
        Arc::clone(&ctx.store) as _,
        Some(patience),
        goes_on,
    );
    let environment = restore_environment(plan, persisted, contents, ctx.workspace);
    let environment = Arc::new(environment.with_clock(Some(Arc::clone(&ctx.clock))));
    let (progress, journal) = match resumed {
        Some(resumed) => resumed.into_parts(state.clone(), &environment),
        None => (None, None),
    };
    let reached = progress.as_ref().map_or(Usage::NOTHING, Progress::spent);
    let lost = live.count_lost(reached);
    // A worker that crashed early may have persisted steps but no event.
    if live.is_resumed() || progress.is_some() {
        live.emit_resumed(progress.as_ref().map(|progress| &progress.state));
    }
    Ok(Restored {
        state,
        environment,
        reached,
        lost,
        progress,
        journal,
    })
}

/// The journal of a run that persists its steps, with the progress of earlier workers.
struct Resumed {
    journals: Arc<RunJournal>,
    progress: Option<Progress>,
}

/// Reads the progress of an earlier worker, for a run that persists its steps.
async fn restore_progress(
    store: &Arc<dyn Store>,
    plan: &RunPlan,
    live: &LiveEvents,
    begun: &AgentState,
) -> Result<Option<Resumed>, Failure> {
    if plan.durability != Durability::Step || live.active.held_lease.is_none() {
        return Ok(None);
    }
    let journals = read_journal(store, &live.active).await;
    let journals = Arc::new(journals.map_err(|error| Failure::progress(&error))?);
    let progress = Progress::of(begun.clone(), journals.entries(OWN_SCOPE));
    let progress = progress.map_err(|error| Failure::progress(&error))?;
    if let Some(progress) = &progress {
        let history = progress.state.store().history();
        let is_known = |id| history.iter().any(|message| message.id == id);
        live.active.inbox.apply_held(is_known);
    }
    Ok(Some(Resumed { journals, progress }))
}

impl Resumed {
    /// Returns the environment as the last worker persisted it.
    fn environment(&self) -> Option<PersistedEnvironment> {
        self.progress.as_ref()?.environment.clone()
    }

    /// Makes the journal of this worker, which continues after the progress.
    fn into_parts(self, begun: AgentState, environment: &Arc<Environment>) -> (Option<Progress>, Option<WorkJournal>) {
        let Self { journals, progress } = self;
        let reached = progress.as_ref().map_or(begun, |progress| progress.state.clone());
        let recorder = Recorder::new(journals.scope(OWN_SCOPE), reached, Arc::clone(environment));
        let journal = WorkJournal {
            recorder: Arc::new(recorder),
            journals,
        };
        (progress, Some(journal))
    }
}

/// Restores the environment as an earlier worker persisted it, or else as the run begins with it.
fn restore_environment(
    plan: &RunPlan,
    persisted: Option<PersistedEnvironment>,
    contents: Arc<dyn Contents>,
    limits: WorkspaceLimits,
) -> Environment {
    match persisted {
        Some(PersistedEnvironment { revision, state }) => {
            Environment::restore(*state, contents, limits).at_revision(revision)
        }
        None => Environment::restore(plan.environment.clone(), contents, limits),
    }
}

/// Creates the state with the settings of the run.
fn restore_state(plan: &RunPlan, live: &LiveEvents, bundle: Option<&Arc<Bundle>>) -> AgentState {
    let settings = &plan.settings;
    let state = match bundle {
        Some(bundle) => state_of(bundle),
        // Every worker that begins the run creates the same agent instance.
        None => AgentState::new(plan.accepted.pinned.agent_id, live.summary().created_at),
    };
    let remembered = plan.answered.as_ref().map(|answered| answered.remembered.as_slice());
    let accepted = plan.answered.as_ref().map(|answered| answered.accepted.as_slice());
    state
        .with_metadata(settings.metadata.clone())
        .with_system_prompt(settings.system_prompt.clone())
        .with_instructions(plan.request().instructions.as_deref().map(Arc::from))
        .with_response_format(settings.response_format.clone())
        .with_overrides(settings.overrides.clone())
        .with_remembered_approvals(remembered_approvals(bundle, remembered))
        .with_tool_pins(accepted_pins(bundle, accepted))
}

fn state_of(bundle: &Bundle) -> AgentState {
    let context = AgentContext {
        store: MessageStore::new(bundle.history.clone()),
        ..AgentContext::default()
    };
    AgentState::new(bundle.context.agent_id, bundle.context.created_at)
        .restored(
            bundle.context.created_at,
            bundle.head.created_at,
            bundle.head.execution_count,
            context,
        )
        .with_parent_agent_id(bundle.context.parent_agent_id)
        .with_model(bundle.context.model.clone())
}
