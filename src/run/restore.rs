//! Restores a run: creates the state and the environment from a bundle and a plan.

use std::sync::Arc;

use super::base::Base;
use super::failure::Failure;
use super::live::LiveEvents;
use super::plan::RunPlan;
use super::queue::read_journal;
use super::work::WorkJournal;
use crate::agent::ports::{Environment, EnvironmentRuntime};
use crate::agent::state::{AgentContext, AgentState, MessageStore};
use crate::agent::{Durability, Journals as _, Progress, Recorder};
use crate::json::Object;
use crate::session::{Bundle, Overrides};
use crate::store::Store;
use crate::usage::Usage;

/// The scope of the run's own agent in its journal.
const OWN_SCOPE: &str = "";

/// The state with which the loop begins.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) state: AgentState,
    pub(super) environment: Box<dyn Environment>,
    /// The usage of earlier attempts whose results are in the state.
    pub(super) reached: Usage,
    /// The usage of earlier attempts whose results are lost.
    pub(super) lost: Usage,
    /// The progress of an earlier worker.
    pub(super) progress: Option<Progress>,
    /// The journal that records the progress of this worker.
    pub(super) journal: Option<WorkJournal>,
}

/// Restores the state and the environment.
pub(super) async fn restore(
    environments: &dyn EnvironmentRuntime,
    store: &Arc<dyn Store>,
    plan: &RunPlan,
    live: &Arc<LiveEvents>,
) -> Result<Restored, Failure> {
    let bundle = match &plan.base {
        Base::None => None,
        Base::Bundle(bundle) => Some(bundle),
        Base::Unreadable(_, error) => return Err(Failure::load(error)),
    };
    let environment = environments
        .restore(&plan.environment)
        .await
        .map_err(|error| Failure::restore(&error))?;
    let state = restore_state(plan, live, bundle);
    let (progress, journal) = restore_progress(store, plan, live, &state).await?;
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

/// Reads the progress of an earlier worker, for a run that persists its steps. The journal
/// continues after it.
async fn restore_progress(
    store: &Arc<dyn Store>,
    plan: &RunPlan,
    live: &LiveEvents,
    begun: &AgentState,
) -> Result<(Option<Progress>, Option<WorkJournal>), Failure> {
    if plan.durability != Durability::Step || live.active.held_lease.is_none() {
        return Ok((None, None));
    }
    let journals = read_journal(store, &live.active).await;
    let journals = Arc::new(journals.map_err(|error| Failure::progress(&error))?);
    let progress = Progress::of(begun.clone(), journals.entries(OWN_SCOPE));
    let progress = progress.map_err(|error| Failure::progress(&error))?;
    if let Some(progress) = &progress {
        let history = progress.state.store().history();
        let is_known = |id| history.iter().any(|message| message.id == id);
        live.active.inbox.settle(is_known);
    }
    let reached = progress.as_ref().map_or(begun, |progress| &progress.state);
    let recorder = Recorder::new(journals.scope(OWN_SCOPE), reached.clone());
    let journal = WorkJournal {
        recorder: Arc::new(recorder),
        journals,
    };
    Ok((progress, Some(journal)))
}

/// Creates the state. The overrides of the session take precedence, and then the agent's own
/// prompt. If the agent has no prompt, the session's earlier prompt stays.
fn restore_state(plan: &RunPlan, live: &LiveEvents, bundle: Option<&Arc<Bundle>>) -> AgentState {
    let definition = &plan.agent;
    let state = match bundle {
        Some(bundle) => state_of(bundle, plan.session_metadata.clone()),
        // Every worker that begins the run creates the same agent instance.
        None => {
            AgentState::new(plan.new_agent_id, live.summary().created_at).with_metadata(plan.session_metadata.clone())
        }
    };
    // If the session has dropped its override of the prompt, the old prompt must not stay.
    let was_set = prompt_of(state.context().overrides.as_deref()).is_some();
    let prompt = prompt_of(plan.overrides.as_deref());
    let state = match prompt {
        Some(prompt) => state.with_system_prompt(prompt.clone()),
        None if was_set || !definition.system_prompt.is_empty() => {
            state.with_system_prompt(definition.system_prompt.clone())
        }
        None => state,
    };
    state
        .with_response_format(plan.response_format.clone())
        .with_overrides(plan.overrides.clone())
}

fn prompt_of(overrides: Option<&Overrides>) -> Option<&String> {
    overrides?.system_prompt.as_ref()
}

fn state_of(bundle: &Bundle, metadata: Object) -> AgentState {
    let context = AgentContext {
        store: MessageStore::new(bundle.history.clone()),
        metadata,
        system_prompt: bundle.context.system_prompt.clone(),
        response_format: bundle.context.response_format.clone(),
        overrides: bundle.context.overrides.clone(),
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
