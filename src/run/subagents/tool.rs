//! A subagent as a tool: a call runs its agent in an execution below the caller's, and answers with what that one said.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::children::{ChildSession, Children};
use super::task::{self, Task, spec_of};
use super::team::Member;
use super::trace::Trace;
use crate::agent::ports::{Tool, ToolContext, ToolError, ToolOutput, ToolSpec};
use crate::agent::state::{AgentState, ExecutionStatus, StopReason, SubagentExecution, ToolTrace};
use crate::agent::{AgentEvent, HookConfig, SubagentConfig};
use crate::ids::{AgentId, MessageId, SessionId};
use crate::json::Value;
use crate::message::{Message, Role};
use crate::run::service::RunService;
use crate::run::work::Work;

/// Has another agent work on each call.
#[derive(Debug)]
pub(super) struct SubagentTool {
    service: Arc<RunService>,
    /// The execution that the other agent works for.
    above: Arc<Work>,
    subagent: SubagentConfig,
    member: Arc<Member>,
    spec: ToolSpec,
}

impl RunService {
    /// Makes the tools by which an agent has others work for it; none where no level is left.
    pub(in crate::run) fn subagent_tools(self: &Arc<Self>, work: &Arc<Work>) -> Vec<Arc<dyn Tool>> {
        let subagents = work.agent.subagents.iter().filter(|_| work.depth_left > 0);
        // The team was gathered for the same definitions, so that none of them is missing.
        let found = subagents.filter_map(|subagent| Some((subagent, work.team.member(&subagent.agent)?)));
        found
            .map(|(subagent, member)| {
                let tool: Arc<dyn Tool> = Arc::new(SubagentTool {
                    service: Arc::clone(self),
                    above: Arc::clone(work),
                    subagent: subagent.clone(),
                    member: Arc::clone(member),
                    spec: spec_of(subagent, &member.agent),
                });
                tool
            })
            .collect()
    }
}

impl SubagentTool {
    async fn perform(&self, task: Task, context: &ToolContext) -> Result<ToolOutput, ToolError> {
        let trace = Arc::new(Trace::default());
        let work = Arc::new(self.work(context, &trace));
        let agent_loop = self.service.agent_loop(&work);
        let agent_loop = agent_loop.map_err(|failure| ToolError::new(self.not_begun(&failure.into_error().message)))?;
        let state = self.begun_state(context);
        let called = Called {
            tool: self,
            agent_id: state.agent_id(),
            step_number: context.step_number,
            work,
            trace,
        };
        called.tell_started();
        let input = vec![self.message(task)];
        let ended = AssertUnwindSafe(agent_loop.run(state, input)).catch_unwind().await;
        called.end(ended.ok())
    }

    /// Makes the execution: the tightest of all limits, the hooks of those above, and of their tools those it may have.
    fn work(&self, context: &ToolContext, trace: &Arc<Trace>) -> Work {
        let (above, agent) = (&self.above, &self.member.agent);
        let budget = agent.budget.clone().tightest(&self.subagent.budget);
        let budget = budget.or(&self.service.settings.budget);
        let wanted = self.subagent.tools.as_ref().unwrap_or(&agent.tools);
        let tools = wanted.iter().filter(|tool| above.tools.contains(tool));
        Work {
            agent: Arc::clone(agent),
            agent_version: self.member.agent_version,
            models: self.member.models.clone(),
            tools: tools.cloned().collect(),
            hooks: with_inherited(&above.hooks, &agent.hooks),
            session_id: SessionId::generate(&*self.service.ports.ids),
            depth_left: above.depth_left.saturating_sub(1).min(agent.max_depth),
            control: Arc::new(above.control.for_subagent(budget, context.deadline)),
            events: Arc::clone(trace) as _,
            variables: Arc::clone(&context.variables),
            team: Arc::clone(&above.team),
            children: Children::default(),
        }
    }

    /// A new agent instance, which knows nothing but what its definition says.
    fn begun_state(&self, context: &ToolContext) -> AgentState {
        let (ports, agent) = (&self.service.ports, &self.member.agent);
        AgentState::new(AgentId::generate(&*ports.ids), ports.clock.now())
            .with_parent_agent_id(Some(context.agent_id))
            .with_metadata(agent.metadata.clone())
            .with_system_prompt(agent.system_prompt.clone())
            .with_response_format(agent.response_format.clone())
    }

    fn message(&self, task: Task) -> Message {
        let ports = &self.service.ports;
        let id = MessageId::generate(&*ports.ids);
        Message::text(id, Role::User, task.into_text(), ports.clock.now())
    }

    fn not_begun(&self, reason: &str) -> String {
        format!("the agent {} can't begin: {reason}", self.member.agent.name)
    }
}

/// A call at work.
struct Called<'a> {
    tool: &'a SubagentTool,
    agent_id: AgentId,
    step_number: usize,
    work: Arc<Work>,
    trace: Arc<Trace>,
}

impl Called<'_> {
    fn tell_started(&self) {
        self.tool.above.events.emit(AgentEvent::SubagentStarted {
            step_number: self.step_number,
            agent: self.work.agent.name.clone(),
            agent_id: self.agent_id,
            session_id: self.work.session_id,
        });
    }

    /// Answers the call. There is no state where the execution met a fault of ours.
    fn end(self, state: Option<AgentState>) -> Result<ToolOutput, ToolError> {
        let name = &self.work.agent.name;
        let status = state.as_ref().and_then(AgentState::status);
        let status = status.unwrap_or(ExecutionStatus::Failed);
        let trace = self.told(status, state.as_ref().and_then(AgentState::stop_reason));
        match state {
            Some(state) if status.has_session() => {
                let words = if status == ExecutionStatus::Completed {
                    task::completed(name, &state)
                } else {
                    task::stopped(name, &state)
                };
                self.keep(state);
                Ok(ToolOutput {
                    trace,
                    ..ToolOutput::text(words)
                })
            }
            Some(state) => Err(ToolError {
                message: task::failed(name, &state),
                trace,
            }),
            None => Err(ToolError {
                message: format!("the agent {name} met an internal error"),
                trace,
            }),
        }
    }

    /// Tells of the end, and returns the trace.
    fn told(&self, status: ExecutionStatus, stop_reason: Option<StopReason>) -> ToolTrace {
        let usage = self.work.control.spent();
        let (agent, session_id) = (self.work.agent.name.clone(), self.work.session_id);
        let subagent = self.trace.told().map(|(execution_id, steps)| SubagentExecution {
            agent: agent.clone(),
            agent_id: self.agent_id,
            session_id,
            execution_id,
            status,
            stop_reason,
            steps,
        });
        self.tool.above.events.emit(AgentEvent::SubagentCompleted {
            step_number: self.step_number,
            agent,
            agent_id: self.agent_id,
            session_id,
            status,
            stop_reason,
            step_count: subagent.as_ref().map_or(0, |subagent| subagent.steps.len()),
            usage,
        });
        ToolTrace {
            usage,
            subagent: subagent.map(Arc::new),
        }
    }

    /// Hands the session to the execution above, which publishes it with its own or drops it.
    fn keep(&self, state: AgentState) {
        let child = ChildSession {
            session_id: self.work.session_id,
            subagent_of: self.tool.above.session_id,
            agent: Arc::clone(&self.work.agent),
            agent_version: self.work.agent_version,
            state,
        };
        self.tool.above.children.add(child, &self.work.children);
    }
}

/// The hooks of those above come first; one that both attach alike is attached once.
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

    /// The execution hears of the run's end itself; cut from outside, it would leave no trace.
    fn ends_by_itself(&self) -> bool {
        true
    }
}
