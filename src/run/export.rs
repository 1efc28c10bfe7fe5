//! Exporting a run: from the state and the environment to a draft of the new session.

use std::sync::Arc;

use super::live::LiveEvents;
use super::outcome::Failure;
use super::plan::RunPlan;
use super::service::RunService;
use crate::agent::ports::Environment;
use crate::agent::state::AgentState;
use crate::ids::{BranchId, MessageId};
use crate::message::{Message, Role};
use crate::session::{BundleDraft, ContextState, History, StoredContext, close_open_tool_calls};

impl RunService {
    /// Exports the three states.
    pub(super) async fn export(
        &self,
        plan: &RunPlan,
        live: &LiveEvents,
        state: AgentState,
        environment: &dyn Environment,
    ) -> Result<BundleDraft, Failure> {
        let environment = environment.export().await.map_err(|error| Failure::export(&error))?;
        let base = plan.base.bundle();
        let summary = live.summary();
        Ok(BundleDraft {
            session_id: summary.session_id,
            parent: base.map(Arc::clone),
            run_id: Some(summary.run_id),
            agent: plan.agent.name.clone(),
            agent_version: Some(plan.agent_version),
            environment: Arc::new(environment),
            context: ContextState {
                stored: StoredContext {
                    agent_id: state.agent_id(),
                    parent_agent_id: state.parent_agent_id(),
                    created_at: state.created_at(),
                    model: state.model().cloned(),
                    system_prompt: state.context().system_prompt.clone(),
                    response_format: state.context().response_format.clone(),
                    other: base.map(|bundle| bundle.context.other.clone()).unwrap_or_default(),
                },
                metadata: state.metadata().clone(),
                execution_count: state.execution_count(),
                updated_at: self.ports.clock.now(),
            },
            history: self.closed_history(state.store().history()),
            new_branch_id: BranchId::generate(&*self.ports.ids),
        })
    }

    /// Answers the calls that the loop left open, so that every provider accepts the history.
    fn closed_history(&self, history: &History) -> History {
        let results = close_open_tool_calls(history, "The run ended before this tool was called.");
        if results.is_empty() {
            return history.clone();
        }
        let id = MessageId::generate(&*self.ports.ids);
        let tags = history.last().map(|last| last.tags.clone()).unwrap_or_default();
        let message = Message::new(id, Role::Tool, results, self.ports.clock.now()).with_tags(tags);
        history.clone().with_message(Arc::new(message))
    }
}
