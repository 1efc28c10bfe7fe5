//! Executes the calls of a step with the hooks around each, several at once. Every call gets exactly one execution, in the order of
//! the calls.

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::ports::DriverPorts;
use crate::agent::events::AgentEvent;
use crate::agent::hooks::{HookContext, HookFailure, HookPoint, HookSubject, ToolDecision, ToolUse};
use crate::agent::ports::ToolContext;
use crate::agent::state::{AgentError, AgentState, ToolExecution, ToolTrace, ToolVerdict};
use crate::ids::ToolExecutionId;
use crate::message::{ContentPart, ToolCall};

/// What the model reads of a call that was not executed because a hook failed.
const NOT_EXECUTED: &str = "The run ended before this tool was called.";
/// What is read of an answer that no hook could look through.
const WITHHELD: &str = "The answer is withheld, because a hook failed before it could be looked through.";

/// The calls of a step, executed.
#[derive(Debug)]
pub(super) struct ToolUses {
    /// One execution for every call, in the order of the calls.
    pub(super) executions: Vec<ToolExecution>,
    /// The hook that failed on the way.
    pub(super) hook_failure: Option<HookFailure>,
}

/// Executes the calls and returns the state as the hooks around them made it.
///
/// The hooks before the calls see them in their order, and what one does to the state reaches the next. Then the calls work at the
/// same time; the hooks after them see them as they end. An agent without parallel calls ends each call, with its hooks, before the
/// next begins. Once a hook has failed, before the calls or among them, no further call is executed.
pub(super) async fn use_tools(
    ports: &DriverPorts,
    state: AgentState,
    calls: Vec<ToolCall>,
    context: &ToolContext,
    hook_failure: Option<HookFailure>,
) -> (AgentState, ToolUses) {
    let batch = if ports.parallel_tool_calls { calls.len() } else { 1 };
    let mut uses = Uses {
        ports,
        context,
        state,
        hook_failure,
    };
    let mut executions = Vec::with_capacity(calls.len());
    let mut calls = calls.into_iter();
    loop {
        let together: Vec<ToolCall> = calls.by_ref().take(batch).collect();
        if together.is_empty() {
            break;
        }
        executions.extend(uses.execute(together).await);
    }
    let Uses {
        state, hook_failure, ..
    } = uses;
    let uses = ToolUses {
        executions,
        hook_failure,
    };
    (state, uses)
}

struct Uses<'a> {
    ports: &'a DriverPorts,
    context: &'a ToolContext,
    state: AgentState,
    hook_failure: Option<HookFailure>,
}

/// A call on its way, with its place among the calls.
type Pending<'a> = BoxFuture<'a, (usize, ToolExecution)>;

impl Uses<'_> {
    /// Executes calls at the same time.
    async fn execute(&mut self, calls: Vec<ToolCall>) -> Vec<ToolExecution> {
        let mut decided = Vec::with_capacity(calls.len());
        for call in calls {
            decided.push(self.before(call).await);
        }
        // What the hooks before the calls did to the metadata reaches the tools.
        let context = ToolContext {
            metadata: self.state.metadata().clone(),
            ..self.context.clone()
        };
        let begun = |(place, (call, tool_use)): (usize, (ToolCall, ToolUse)), has_failed: bool| -> Pending<'_> {
            let tool_use = if has_failed { not_executed(tool_use) } else { tool_use };
            Box::pin(self.ports.execution(place, call, tool_use, &context))
        };
        let mut waiting = decided.into_iter().enumerate();
        let mut after = After {
            ports: self.ports,
            step_number: self.context.step_number,
            state: &mut self.state,
            hook_failure: &mut self.hook_failure,
        };
        let concurrency = self.ports.tools.concurrency().max(1);
        let first = waiting.by_ref().take(concurrency);
        let mut working: FuturesUnordered<_> = first.map(|next| begun(next, after.has_failed())).collect();
        let mut ended = Vec::new();
        while let Some((place, execution)) = working.next().await {
            ended.push((place, after.ended(execution).await));
            working.extend(waiting.next().map(|next| begun(next, after.has_failed())));
        }
        ended.sort_by_key(|(place, _)| *place);
        ended.into_iter().map(|(_, execution)| execution).collect()
    }

    /// Lets the hooks decide about a call; returns it as the model wrote it, and as it will be used.
    async fn before(&mut self, call: ToolCall) -> (ToolCall, ToolUse) {
        let undecided = ToolUse {
            call: call.clone(),
            decision: ToolDecision::Execute,
        };
        if self.hook_failure.is_some() || !self.ports.hooks.has_hooks_at(HookPoint::BeforeToolUse) {
            return (call, undecided);
        }
        let context = HookContext {
            point: HookPoint::BeforeToolUse,
            state: self.state.clone(),
            subject: HookSubject::ToolUse(undecided.clone()),
        };
        let (context, failure) = self.ports.hooks.call(context).await;
        self.state = context.state;
        let tool_use = match context.subject {
            HookSubject::ToolUse(tool_use) => tool_use,
            // The stack lets no hook change the kind of the subject.
            _ => undecided,
        };
        self.hook_failure = failure;
        (call, tool_use)
    }
}

impl DriverPorts {
    /// Executes a call unless hooks have decided otherwise. The record has the call as the model wrote it.
    async fn execution(
        &self,
        place: usize,
        call: ToolCall,
        tool_use: ToolUse,
        context: &ToolContext,
    ) -> (usize, ToolExecution) {
        let (content, verdict) = match tool_use.decision {
            ToolDecision::Execute => {
                let execution = self.tools.execute(tool_use.call, context).await;
                return (place, ToolExecution { call, ..execution });
            }
            ToolDecision::Block { reason } => (vec![ContentPart::text(reason)], ToolVerdict::Blocked),
            ToolDecision::Supply { content } => (content, ToolVerdict::Supplied),
        };
        let now = self.now();
        let execution = ToolExecution {
            id: ToolExecutionId::generate(&*self.ids),
            call,
            content,
            error: None,
            started_at: now,
            completed_at: now,
            verdict,
            trace: ToolTrace::default(),
        };
        (place, execution)
    }
}

/// Returns the use of a call that a failed hook keeps from its tool, whatever was decided about it.
fn not_executed(tool_use: ToolUse) -> ToolUse {
    let reason = NOT_EXECUTED.to_owned();
    let decision = ToolDecision::Block { reason };
    ToolUse { decision, ..tool_use }
}

/// Returns an execution without its answer: a hook that had to see it before anybody else was not reached.
fn withheld(execution: ToolExecution) -> ToolExecution {
    let error = execution.error.map(|error| AgentError {
        message: WITHHELD.to_owned(),
        ..error
    });
    ToolExecution {
        content: vec![ContentPart::text(WITHHELD)],
        error,
        ..execution
    }
}

/// What follows the end of each call.
struct After<'a> {
    ports: &'a DriverPorts,
    step_number: usize,
    state: &'a mut AgentState,
    hook_failure: &'a mut Option<HookFailure>,
}

impl After<'_> {
    /// Tells whether a hook has failed, so that nothing may begin any more.
    fn has_failed(&self) -> bool {
        self.hook_failure.is_some()
    }

    /// Lets the hooks see the execution, then everybody hear of it.
    async fn ended(&mut self, execution: ToolExecution) -> ToolExecution {
        let is_seen = self.hook_failure.is_none() && self.ports.hooks.has_hooks_at(HookPoint::AfterToolUse);
        let execution = if is_seen { self.seen(execution).await } else { execution };
        let is_unseen = self.hook_failure.is_some() && self.ports.hooks.holds_back_deltas();
        let execution = if is_unseen { withheld(execution) } else { execution };
        self.ports
            .events
            .emit(AgentEvent::tool_call_completed(self.step_number, &execution));
        execution
    }

    async fn seen(&mut self, execution: ToolExecution) -> ToolExecution {
        let context = HookContext {
            point: HookPoint::AfterToolUse,
            state: self.state.clone(),
            subject: HookSubject::ToolExecution(Box::new(execution.clone())),
        };
        let (context, failure) = self.ports.hooks.call(context).await;
        *self.state = context.state;
        *self.hook_failure = failure;
        match context.subject {
            HookSubject::ToolExecution(execution) => *execution,
            // The stack lets no hook change the kind of the subject.
            _ => execution,
        }
    }
}
