//! Executes and records the tool calls of a step, several at once, with the hooks around each call.
//!
//! Every call gets exactly one execution, in the order of the calls. New and resumed steps share
//! this code: each call continues from its stage (`PendingCall`). A call that had begun is executed
//! again only if its tool is repeatable (`Tool::is_repeatable`). Idempotent tools are repeatable.
//! So are subagents, which continue from their own journal. The result of any other call states
//! that its effect is uncertain.

use std::future::ready;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::call_ends::{WITHHELD, never_made, not_executed, too_many, uncertain};
use super::ports::DriverPorts;
use crate::agent::events::AgentEvent;
use crate::agent::hooks::{HookContext, HookFailure, HookPoint, HookSubject, ToolDecision, ToolUse};
use crate::agent::ports::ToolContext;
use crate::agent::progress::{CallStage, PendingCall};
use crate::agent::recorder::JournalFailed;
use crate::agent::state::{AgentState, ErrorKind, ToolExecution};
use crate::message::ToolCall;

/// Executes the calls, each from its stage. Returns the state with the changes of the hooks, and
/// one execution for each call. Calls beyond the most calls of a step end as errors, without a call
/// of the hooks before them.
///
/// The hooks before the calls run in the order of the calls, and each sees the state that the one
/// before returned. Then the calls run concurrently. The hooks after a call run when it ends.
/// Without parallel calls, each call ends, with its hooks, before the next begins. Once a hook or
/// the journal has failed, no further call is executed.
pub(super) async fn use_tools(
    ports: &DriverPorts,
    state: AgentState,
    calls: Vec<PendingCall>,
    context: ToolContext,
    hook_failure: Option<HookFailure>,
) -> (AgentState, Vec<ToolExecution>) {
    let is_recorded = ports.journal.is_some();
    let written = calls.iter().filter(|_| is_recorded).map(|call| call.call.clone());
    let written: Vec<_> = written.collect();
    let mut uses = Uses {
        ports,
        context,
        has_failed: has_failed(&state),
        state,
        ended: vec![None; calls.len()],
        in_flight: Vec::new(),
    };
    if let Some(failure) = hook_failure {
        uses.fail(failure);
    }
    if let Err(JournalFailed) = uses.execute_all(calls).await {
        uses.state = JournalFailed::in_state(uses.state, ports.now());
    }
    // Only a failed journal leaves calls without a result.
    let missing = |index: usize| {
        let call = written.get(index)?.clone();
        let was_made = uses.in_flight.contains(&index);
        Some(if was_made {
            uncertain(ports, call)
        } else {
            never_made(ports, call)
        })
    };
    let executions = uses.ended.into_iter().enumerate();
    let executions = executions.filter_map(|(index, ended)| ended.or_else(|| missing(index)));
    let executions = executions.collect();
    (uses.state, executions)
}

/// Returns whether a hook had failed before the step was interrupted.
fn has_failed(state: &AgentState) -> bool {
    let mut errors = state
        .execution()
        .into_iter()
        .flat_map(|execution| execution.errors.iter());
    errors.any(|error| error.kind == ErrorKind::Hook)
}

struct Uses<'a> {
    ports: &'a DriverPorts,
    context: ToolContext,
    state: AgentState,
    /// Whether a hook has failed.
    has_failed: bool,
    /// How the calls ended, by index.
    ended: Vec<Option<ToolExecution>>,
    /// The indexes of the calls in flight.
    in_flight: Vec<usize>,
}

/// A call that may begin.
struct Next {
    index: usize,
    /// The call as the model wrote it.
    call: ToolCall,
    tool_use: ToolUse,
    /// Whether the call began before, in a process that did not record its end.
    was_begun: bool,
}

/// A call in flight, with its index.
type Working<'a> = BoxFuture<'a, (usize, ToolExecution)>;

impl<'a> Uses<'a> {
    async fn execute_all(&mut self, calls: Vec<PendingCall>) -> Result<(), JournalFailed> {
        let batch = if self.ports.parallel_tool_calls { calls.len() } else { 1 };
        let mut calls = calls.into_iter().enumerate().peekable();
        while calls.peek().is_some() {
            let together = calls.by_ref().take(batch).collect();
            self.execute(together).await?;
            // The end of a call is persisted together with the beginning of the next, unless a hook
            // runs in between.
            if calls.peek().is_none() || self.ports.hooks.has_hooks_at(HookPoint::BeforeToolUse) {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Executes calls concurrently.
    async fn execute(&mut self, calls: Vec<(usize, PendingCall)>) -> Result<(), JournalFailed> {
        let mut waiting = Vec::with_capacity(calls.len());
        for (index, call) in calls {
            waiting.extend(self.next(index, call).await);
        }
        // Tools see the metadata after the hooks before the calls have changed it.
        self.context.metadata = Arc::new(self.state.metadata().clone());
        let mut waiting = waiting.into_iter();
        let concurrency = self.ports.tools.concurrency().max(1);
        let first = waiting.by_ref().take(concurrency);
        let first: Vec<_> = first.map(|next| self.begin(next)).collect();
        self.flush().await?;
        let mut working: FuturesUnordered<_> = first.into_iter().map(|call| self.go(call)).collect();
        while let Some((index, execution)) = self.next_end(&mut working).await {
            self.end(index, execution).await;
            let next = waiting.next().map(|next| self.begin(next));
            if next.is_some() || !working.is_empty() {
                self.flush().await?;
            }
            working.extend(next.map(|call| self.go(call)));
        }
        Ok(())
    }

    /// Calls the hooks before a call, unless they have decided already. Returns `None` if the call
    /// has ended.
    async fn next(&mut self, index: usize, call: PendingCall) -> Option<Next> {
        let PendingCall { call, stage } = call;
        let (tool_use, was_begun) = match stage {
            CallStage::Open if index >= self.ports.tools.max_calls() => {
                let (calls, max) = (self.ended.len(), self.ports.tools.max_calls());
                self.end(index, too_many(self.ports, call, calls, max)).await;
                return None;
            }
            CallStage::Open => (self.decide(index, call.clone()).await, false),
            CallStage::Decided(tool_use) => (tool_use, false),
            CallStage::Begun(tool_use) => (tool_use, true),
            CallStage::Ended(execution) => {
                self.note_end(index, *execution);
                return None;
            }
        };
        Some(Next {
            index,
            call,
            tool_use,
            was_begun,
        })
    }

    async fn decide(&mut self, index: usize, call: ToolCall) -> ToolUse {
        let undecided = ToolUse {
            call,
            decision: ToolDecision::Execute,
        };
        if self.has_failed || !self.ports.hooks.has_hooks_at(HookPoint::BeforeToolUse) {
            return undecided;
        }
        let context = HookContext::new(
            HookPoint::BeforeToolUse,
            self.state.clone(),
            HookSubject::ToolUse(undecided.clone()),
        );
        let (context, failure) = self.ports.hooks.call(context, || self.ports.now()).await;
        self.state = context.state;
        let tool_use = match context.subject {
            HookSubject::ToolUse(tool_use) => tool_use,
            // The stack lets no hook change the kind of the subject.
            _ => undecided,
        };
        match failure {
            Some(failure) => self.fail(failure),
            None => {
                if let Some(journal) = &self.ports.journal {
                    journal.decided(index, &tool_use, &self.state);
                }
            }
        }
        tool_use
    }

    /// Prepares a call, and notes its beginning for the journal.
    fn begin(&self, next: Next) -> (usize, Working<'a>) {
        let Next {
            index,
            call,
            tool_use,
            was_begun,
        } = next;
        let ports = self.ports;
        if was_begun && (self.has_failed || !ports.tools.is_repeatable(&tool_use.call.name)) {
            return (index, Box::pin(ready((index, uncertain(ports, call)))));
        }
        let tool_use = if self.has_failed {
            not_executed(tool_use)
        } else {
            tool_use
        };
        let begins = !was_begun && tool_use.decision == ToolDecision::Execute;
        if let Some(journal) = ports.journal.as_ref().filter(|_| begins) {
            journal.begun(index);
        }
        let context = ToolContext {
            call_id: call.id.clone(),
            idempotency_key: ports.call_seed.key(self.context.step_number, index, &call),
            ..self.context.clone()
        };
        let work = async move { (index, ports.execution(call, tool_use, &context).await) };
        (index, Box::pin(work))
    }

    /// Starts a call whose beginning is persisted.
    fn go(&mut self, (index, call): (usize, Working<'a>)) -> Working<'a> {
        self.in_flight.push(index);
        call
    }

    /// Waits for the end of one of the calls. A stop cuts calls like a cancellation.
    async fn next_end(&self, working: &mut FuturesUnordered<Working<'a>>) -> Option<(usize, ToolExecution)> {
        let (stop, cut) = (self.ports.control.stop(), &self.context.cancellation);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled(), if !cut.is_cancelled() => cut.cancel(),
                ended = working.next() => return ended,
            }
        }
    }

    /// Calls the hooks after the call, then emits its end.
    async fn end(&mut self, index: usize, execution: ToolExecution) {
        self.in_flight.retain(|other| *other != index);
        let hooks = &self.ports.hooks;
        let is_seen = !self.has_failed && !self.has_journal_failed() && hooks.has_hooks_at(HookPoint::AfterToolUse);
        let mut execution = if is_seen { self.seen(execution).await } else { execution };
        if self.has_failed && hooks.holds_back_deltas() {
            execution.withhold(WITHHELD);
        }
        let emitted = AgentEvent::tool_call_completed(self.context.step_number, &execution);
        self.ports.events.emit(emitted);
        if let Some(journal) = &self.ports.journal {
            journal.ended(index, &execution, &self.state);
        }
        self.note_end(index, execution);
    }

    async fn seen(&mut self, execution: ToolExecution) -> ToolExecution {
        let context = HookContext::new(
            HookPoint::AfterToolUse,
            self.state.clone(),
            HookSubject::ToolExecution(Box::new(execution.clone())),
        );
        let (context, failure) = self.ports.hooks.call(context, || self.ports.now()).await;
        self.state = context.state;
        if let Some(failure) = failure {
            self.fail(failure);
        }
        match context.subject {
            HookSubject::ToolExecution(execution) => *execution,
            // The stack lets no hook change the kind of the subject.
            _ => execution,
        }
    }

    fn note_end(&mut self, index: usize, execution: ToolExecution) {
        if let Some(ended) = self.ended.get_mut(index) {
            *ended = Some(execution);
        }
    }

    /// Adds the failure of a hook to the state. The next journal entry records it.
    fn fail(&mut self, failure: HookFailure) {
        self.has_failed = true;
        self.state = failure.in_state(self.state.clone(), self.ports.now());
    }

    /// Returns whether the journal has failed, here or in a subagent. After a failure, nothing may
    /// have an effect.
    fn has_journal_failed(&self) -> bool {
        self.ports
            .journal
            .as_ref()
            .is_some_and(|journal| journal.failure().is_some())
    }

    async fn flush(&self) -> Result<(), JournalFailed> {
        match &self.ports.journal {
            Some(journal) => journal.flush().await,
            None => Ok(()),
        }
    }
}
