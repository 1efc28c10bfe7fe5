//! A subagent as a tool: a call runs the agent in a separate execution and returns its final
//! response.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;

use super::called::Called;
use super::journaled::{JournaledSubagent, restore_children};
use super::task::{Task, spec_of};
use super::trace::{Relay, Trace};
use crate::run::context::{ExecutionSlot, RunContext};
use crate::run::plan::Member;
use crate::run::work::{Children, MakeLoop, Work, WorkJournal, with_own_approvals};
use agent::CallSeed;
use agent::definition::{HookConfig, SubagentConfig, SubagentWorkspace};
use agent::journal::{JournalEntry, PendingStep, Progress};
use agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use agent::state::{AgentState, ExecutionBudget};
use values::clock::{Deadline, Timestamp};
use values::ids::{AgentId, MessageId, SessionId};
use values::json::Value;
use values::message::{Message, Role};
use values::session::EnvironmentState;
use workspace::Tree;
use workspace::environment::Environment;

/// A tool that executes each call with a subagent.
#[derive(Debug)]
pub(super) struct SubagentTool {
    ctx: Arc<RunContext>,
    make_loop: MakeLoop,
    /// The parent execution.
    above: Arc<Work>,
    subagent: SubagentConfig,
    member: Arc<Member>,
    spec: ToolSpec,
}

/// The execution of a call.
struct Begun {
    work: Arc<Work>,
    state: AgentState,
    start: Start,
    /// The files of the parent agent at the begin, if the subagent works on a copy of them.
    forked_from: Option<Tree>,
}

/// The parts of a new execution that it does not share with others.
struct Own {
    session_id: SessionId,
    environment: Arc<Environment>,
    journal: Option<WorkJournal>,
}

/// How an execution starts.
enum Start {
    /// New, with its input.
    Anew(Vec<Message>),
    /// Continued from another process, within a step or after one.
    Again(Option<Box<PendingStep>>),
}

/// Creates the tools for an agent's subagents; none if no level is left.
pub(in crate::run) fn subagent_tools(
    ctx: &Arc<RunContext>,
    make_loop: MakeLoop,
    work: &Arc<Work>,
) -> Vec<Arc<dyn Tool>> {
    let subagents = work.member.agent.subagents.iter().filter(|_| work.depth_left > 0);
    // The team was gathered from the same definitions, so no member is missing.
    let found = subagents.filter_map(|subagent| Some((subagent, work.team.member(&subagent.agent)?)));
    found
        .map(|(subagent, member)| {
            let tool: Arc<dyn Tool> = Arc::new(SubagentTool {
                ctx: Arc::clone(ctx),
                make_loop,
                above: Arc::clone(work),
                subagent: subagent.clone(),
                member: Arc::clone(member),
                spec: spec_of(subagent, &member.agent),
            });
            tool
        })
        .collect()
}

impl SubagentTool {
    async fn perform(&self, task: Task, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let journaled = self.journaled(context)?;
        let slot = self.slot(context).await?;
        self.above
            .slot
            .count_one()
            .map_err(|left| ToolError::new(self.not_begun(&left.to_string())))?;
        let trace = Arc::new(Trace::new(
            self.relay(context),
            self.ctx.metrics.clone(),
            self.above.trace.clone(),
        ));
        let Begun {
            work,
            state,
            start,
            forked_from,
        } = match journaled {
            None => self.begin(task, context, slot, &trace).await?,
            Some(journaled) => self.go_on(journaled, context, slot, &trace)?,
        };
        let called = Called {
            above: &self.above,
            agent_id: state.agent_id(),
            step_number: context.step_number,
            call_id: context.call_id.clone(),
            work,
            trace,
            forked_from,
        };
        if matches!(start, Start::Again(_)) && !state.has_active_execution() {
            return called.end(Some(state)).await;
        }
        let agent_loop = (self.make_loop)(&self.ctx, &called.work);
        let agent_loop = agent_loop.map_err(|failure| ToolError::new(self.not_begun(&failure.into_error().message)))?;
        if matches!(start, Start::Anew(_)) {
            called.emit_started();
        }
        let working = Box::pin(async move {
            match start {
                Start::Anew(input) => agent_loop.run(state, input).await,
                Start::Again(pending) => agent_loop.resume(state, pending.map(|pending| *pending)).await,
            }
        });
        // Runs in a separate task, so that levels of agents do not share one stack. If the waiting
        // execution is dropped, the task is aborted.
        let working = AbortOnDropHandle::new(self.ctx.process.tasks.runs.spawn(working.in_current_span()));
        called.end(working.await.ok()).await
    }

    fn relay(&self, context: &ToolContext) -> Option<Relay> {
        Some(Relay {
            to: Arc::clone(self.above.relay.as_ref()?),
            step_number: context.step_number,
            call_id: context.call_id.clone(),
            depth: self.above.depth + 1,
        })
    }

    /// Waits for a slot, until the run is stopped or cancelled.
    async fn slot(&self, context: &ToolContext) -> Result<ExecutionSlot, ToolError> {
        let ended = tokio::select! {
            biased;
            signal = self.above.control.interrupted(time_limit(context)) => signal.message,
            slot = self.above.slot.below() => match slot {
                Some(slot) => return Ok(slot),
                None => "the service is shutting down".to_owned(),
            },
        };
        Err(ToolError::new(self.not_begun(&ended)))
    }

    /// Returns the progress of the call in the journal of an earlier attempt.
    fn journaled(&self, context: &ToolContext) -> Result<Option<JournaledSubagent>, ToolError> {
        let Some(journal) = &self.above.journal else {
            return Ok(None);
        };
        JournaledSubagent::read(journal.journals.entries(&context.idempotency_key))
            .map_err(|gap| ToolError::new(self.not_begun(&format!("its progress can't be read: {gap}"))))
    }

    async fn begin(
        &self,
        task: Task,
        context: &ToolContext,
        slot: ExecutionSlot,
        trace: &Arc<Trace>,
    ) -> Result<Begun, ToolError> {
        let state = self.begun_state(context);
        let session_id = SessionId::generate(&*self.ctx.ids);
        let found = context.environment.refresh().await;
        found.map_err(|error| ToolError::new(self.not_begun(&error.to_string())))?;
        let environment = self.environment(&context.environment);
        let journal = match &self.above.journal {
            Some(above) => {
                let begun = JournalEntry::SubagentBegun {
                    session_id,
                    agent_id: state.agent_id(),
                    agent_version: self.member.agent_version,
                    environment: self.begun_with(&environment).await?.map(Box::new),
                };
                // Records the state that comes from the definition as well, so that the entries can
                // be read without the definition.
                let empty = AgentState::new(state.agent_id(), state.created_at());
                Some(above.for_subagent(&context.idempotency_key, empty, &environment, Some(begun)))
            }
            None => None,
        };
        let forked_from = self.is_fork().then(|| environment.tree());
        let own = Own {
            session_id,
            environment,
            journal,
        };
        let work = Arc::new(self.work(context, own, slot, trace));
        let start = Start::Anew(vec![self.message(task)]);
        Ok(Begun {
            work,
            state,
            start,
            forked_from,
        })
    }

    /// Returns the environment of a new subagent.
    fn environment(&self, above: &Arc<Environment>) -> Arc<Environment> {
        match self.subagent.workspace {
            SubagentWorkspace::Fork => Arc::new(above.fork()),
            SubagentWorkspace::Shared => Arc::clone(above),
            SubagentWorkspace::None => Arc::new(above.without_files()),
        }
    }

    /// Returns the environment with which a takeover begins; `None` if it is the parent agent's.
    async fn begun_with(&self, environment: &Environment) -> Result<Option<EnvironmentState>, ToolError> {
        if self.subagent.workspace == SubagentWorkspace::Shared {
            return Ok(None);
        }
        let exported = environment.export().await;
        exported.map(Some).map_err(|error| {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "an environment can't be stored"
            );
            ToolError::new(self.not_begun("its files can't be stored"))
        })
    }

    fn is_fork(&self) -> bool {
        self.subagent.workspace == SubagentWorkspace::Fork
    }

    /// Continues an execution of another process: with the same agent instance, its usage and its
    /// sessions.
    fn go_on(
        &self,
        journaled: JournaledSubagent,
        context: &ToolContext,
        slot: ExecutionSlot,
        trace: &Arc<Trace>,
    ) -> Result<Begun, ToolError> {
        let environment = match journaled.environment() {
            Some(state) if self.subagent.workspace != SubagentWorkspace::Shared => {
                let revision = journaled
                    .progress
                    .environment
                    .as_ref()
                    .map(|persisted| persisted.revision);
                Arc::new(
                    context
                        .environment
                        .again(state.clone())
                        .at_revision(revision.unwrap_or_default()),
                )
            }
            _ => self.environment(&context.environment),
        };
        let forked_from = match &journaled.begun_with {
            Some(begun) if self.is_fork() => Some(context.environment.again((**begun).clone()).tree()),
            _ => None,
        };
        let JournaledSubagent {
            session_id, progress, ..
        } = journaled;
        let journal = self.above.journal.as_ref();
        let journal = journal.map(|above| {
            let scope = &context.idempotency_key;
            above.for_subagent(scope, progress.state.clone(), &environment, None)
        });
        slot.count_ended(&progress);
        let own = Own {
            session_id,
            environment,
            journal,
        };
        let work = Arc::new(self.work(context, own, slot, trace));
        work.control.resume(progress.spent());
        work.control.record().add_progress(&progress);
        restore_children(&work, &progress)
            .map_err(|gap| ToolError::new(self.not_begun(&format!("its progress can't be read: {gap}"))))?;
        trace.go_on(&progress.state);
        let Progress { state, pending, .. } = progress;
        let start = Start::Again(pending.map(Box::new));
        Ok(Begun {
            work,
            state,
            start,
            forked_from,
        })
    }

    /// Creates the execution: with the lowest of all limits, the hooks of its ancestors, and the
    /// tools that it may use among theirs.
    fn work(&self, context: &ToolContext, own: Own, slot: ExecutionSlot, trace: &Arc<Trace>) -> Work {
        let Own {
            session_id,
            environment,
            journal,
        } = own;
        let (above, agent) = (&self.above, &self.member.agent);
        let budget = agent.budget.clone().tightest(&self.subagent.budget);
        let ceiling = ExecutionBudget {
            max_steps: above.step_ceiling,
            ..ExecutionBudget::default()
        };
        let budget = budget.or(&self.ctx.settings.budget).tightest(&ceiling);
        let wanted = self.subagent.tools.as_ref().unwrap_or(&agent.tools);
        let tools = wanted.iter().filter(|tool| above.tools.contains(tool));
        Work {
            tenant: above.tenant.clone(),
            member: Arc::clone(&self.member),
            tools: tools.cloned().collect(),
            client_tools: Arc::default(),
            traces: agent.traces,
            served: above.served.of_subagent(&self.subagent, agent),
            approvals: with_own_approvals(&above.approvals, agent),
            hooks: with_inherited(&above.hooks, &agent.hooks),
            session_id,
            depth_left: above.depth_left.saturating_sub(1).min(agent.max_depth),
            step_ceiling: above.step_ceiling,
            control: Arc::new(above.control.for_subagent(budget, time_limit(context))),
            events: Arc::clone(trace) as _,
            trace: above.trace.clone(),
            relay: above.relay.clone(),
            depth: above.depth + 1,
            environment,
            team: Arc::clone(&above.team),
            slot,
            children: Children::default(),
            formats: Arc::default(),
            call_seed: CallSeed::of_call(&context.idempotency_key),
            journal,
            inbox: None,
        }
    }

    /// Creates the state of a new agent instance, from its definition alone.
    fn begun_state(&self, context: &ToolContext) -> AgentState {
        let (ctx, agent) = (&self.ctx, &self.member.agent);
        AgentState::new(AgentId::generate(&*ctx.ids), ctx.clock.now())
            .with_parent_agent_id(Some(context.agent_id))
            .with_metadata(agent.metadata.clone())
            .with_system_prompt(agent.system_prompt.clone())
            .with_response_format(agent.response_format.clone())
            .with_tool_pins(self.above.served.pins().clone())
    }

    fn message(&self, task: Task) -> Message {
        let id = MessageId::generate(&*self.ctx.ids);
        Message::text(id, Role::User, task.into_text(), self.ctx.clock.now())
    }

    fn not_begun(&self, reason: &str) -> String {
        format!("the agent {} can't begin: {reason}", self.member.agent.name)
    }
}

/// Combines hooks, hooks of the ancestors first. A hook that both attach with the same
/// configuration is attached once.
fn with_inherited(above: &[HookConfig], own: &[HookConfig]) -> Vec<HookConfig> {
    let added = own.iter().filter(|hook| !above.contains(hook));
    above.iter().chain(added).cloned().collect()
}

impl Tool for SubagentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, context: &'a ToolContext) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let task =
                Task::read(arguments).ok_or_else(|| ToolError::new("the task is empty; say what is to be done"))?;
            self.perform(task, context).await
        })
    }

    /// A repeated call continues from the subagent's own journal.
    fn is_repeatable(&self) -> bool {
        true
    }

    /// The execution ends by itself when the run ends. If it were aborted from outside, its trace
    /// would be lost.
    fn ends_by_itself(&self) -> bool {
        true
    }
}

/// Returns when the time of the execution above is spent, by its clock.
fn time_limit(context: &ToolContext) -> Option<Timestamp> {
    context.deadline.as_ref().map(Deadline::at)
}
