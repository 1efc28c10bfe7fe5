//! Executes and records the tool calls of a step, several at once, with the hooks around each call.
//!
//! Every call gets exactly one execution, in the order of the calls. New and resumed steps share
//! this code: each call continues from its stage (`PendingCall`). A call that had begun is executed
//! again only if its tool is repeatable (`Tool::is_repeatable`). Idempotent tools are repeatable.
//! So are subagents, which continue from their own journal. The result of any other call states
//! that its effect is uncertain.
//!
//! A call that needs an answer of the caller is left open, once the hooks before it have decided
//! (`answers/`). So is a call whose tool asks for input. All other calls of the step are executed.

use std::future::ready;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;

use super::call_ends::{
    WITHHELD, cant_ask, cant_wait, cut_off, input_too_late, never_made, not_executed, too_many, uncertain,
};
use super::ports::DriverPorts;
use crate::answers::{Need, OpenUse};
use crate::events::{AgentEvent, TracedWork};
use crate::hook_point::HookPoint;
use crate::hooks::{HookContext, HookFailure, HookSubject};
use crate::journal::{CallStage, JournalFailed, PendingCall};
use crate::ports::{Continuation, ToolContext, ToolDecision, ToolUse};
use crate::state::{AgentState, NeededInput, ToolExecution};
use values::json::Value;
use values::message::ToolCall;

/// The calls of a step once no more of them can be executed.
pub(super) struct Used {
    /// The state with the changes of the hooks.
    pub(super) state: AgentState,
    /// One execution for each call that is not open, in the order of the calls.
    pub(super) ended: Vec<Option<ToolExecution>>,
    /// The calls that need an answer, in their order.
    pub(super) open: Vec<OpenUse>,
}

/// The outcome of a step before its calls.
#[derive(Default)]
pub(super) struct Before {
    /// The failure of a hook after the completion.
    pub(super) hook_failure: Option<HookFailure>,
    /// The signal that cut the completion; `None` if it is whole.
    pub(super) cut: Option<String>,
    /// Whether a signal ends the execution after the step.
    pub(super) is_last: bool,
}

/// Executes the calls, each from its stage. If the execution ends after this step, no call is left
/// open: such a call gets the result that it was not executed. Calls beyond the most calls of a
/// step, and all calls of a completion that is not whole, end as errors, without a call of the
/// hooks before them.
///
/// The hooks before the calls run in the order of the calls, and each hook sees the state that the
/// previous hook returned. Then the calls run concurrently. The hooks after a call run when it
/// ends. Without parallel calls, each call ends, with its hooks, before the next begins. Once a
/// hook or the journal has failed, no further call is executed.
pub(super) async fn use_tools(
    ports: &DriverPorts,
    state: AgentState,
    calls: Vec<PendingCall>,
    context: ToolContext,
    before: Before,
) -> Used {
    let is_retained = ports.journal.is_some() || !ports.answers.is_empty();
    let written = calls.iter().filter(|_| is_retained).map(|call| call.call.clone());
    let written: Vec<_> = written.collect();
    let mut uses = Uses {
        ports,
        context,
        has_failed: HookFailure::is_in(&state),
        has_effects: have_effects(ports, &calls),
        state,
        ended: vec![None; calls.len()],
        open: Vec::new(),
        written,
        cut: before.cut,
        is_last: before.is_last,
        in_flight: Vec::new(),
    };
    if let Some(failure) = before.hook_failure {
        uses.fail(failure);
    }
    if let Err(JournalFailed) = uses.execute_all(calls).await {
        uses.state = JournalFailed::in_state(uses.state, ports.journal.as_deref(), ports.now());
    }
    // Calls may have asked for input in another order.
    uses.open.sort_by_key(|open| open.index);
    // Only a failed journal leaves calls without a result.
    let missing = |index: usize| {
        let call = uses.written.get(index)?.clone();
        let was_made = uses.in_flight.contains(&index);
        Some(if was_made {
            uncertain(ports, call)
        } else {
            never_made(ports, call)
        })
    };
    let is_open = |index| uses.open.iter().any(|open| open.index == index);
    let ended = uses.ended.iter().cloned().enumerate();
    let ended = ended.map(|(index, ended)| ended.or_else(|| missing(index).filter(|_| !is_open(index))));
    Used {
        ended: ended.collect(),
        state: uses.state,
        open: uses.open,
    }
}

/// Returns whether any of the calls has effects, or a hook around them.
fn have_effects(ports: &DriverPorts, calls: &[PendingCall]) -> bool {
    let around = [HookPoint::BeforeToolUse, HookPoint::AfterToolUse];
    let has_effects = |call: &PendingCall| !ports.tools.is_read_only(&call.call.name);
    ports.hooks.has_effects_at(&around) || calls.iter().any(has_effects)
}

struct Uses<'a> {
    ports: &'a DriverPorts,
    context: ToolContext,
    state: AgentState,
    /// Whether a hook has failed.
    has_failed: bool,
    /// Whether any of the calls, or a hook around them, has effects.
    has_effects: bool,
    /// The ends of the calls, by index.
    ended: Vec<Option<ToolExecution>>,
    /// The calls that need an answer.
    open: Vec<OpenUse>,
    /// The calls as the model wrote them, if the execution is recorded or some of them may wait.
    written: Vec<ToolCall>,
    /// The signal that cut the completion; `None` if it is whole.
    cut: Option<String>,
    /// Whether a signal ends the execution after the step.
    is_last: bool,
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

/// The outcome of a call in flight.
enum CallEnd {
    /// The call has ended.
    Ended(ToolExecution),
    /// The tool asks for input.
    NeedsInput(ToolUse, NeededInput),
}

/// A call in flight, with its index.
type Working<'a> = BoxFuture<'a, (usize, CallEnd)>;

impl<'a> Uses<'a> {
    async fn execute_all(&mut self, mut calls: Vec<PendingCall>) -> Result<(), JournalFailed> {
        self.decide_edited(&mut calls).await;
        let batch = if self.ports.parallel_tool_calls { calls.len() } else { 1 };
        let mut calls = calls.into_iter().enumerate().peekable();
        while calls.peek().is_some() {
            let together = calls.by_ref().take(batch).collect();
            self.execute(together).await?;
            // The end of a call is persisted together with the beginning of the next, unless a hook
            // with effects runs in between. The end of the last call is persisted with the step.
            if calls.peek().is_some() && self.ports.hooks.has_effects_at(&[HookPoint::BeforeToolUse]) {
                self.flush().await?;
            }
        }
        self.close_open().await;
        Ok(())
    }

    /// Calls the hooks before the calls whose arguments the caller has edited. All of them decide
    /// before the first entry of the journal is persisted, so that no takeover forgets an edit.
    async fn decide_edited(&mut self, calls: &mut [PendingCall]) {
        for (index, call) in calls.iter_mut().enumerate() {
            if let CallStage::Edited(edited) = &call.stage {
                let decided = self.decide(index, edited.clone()).await;
                if let Some(journal) = &self.ports.journal {
                    // Hooks have noted their decision already, and the first note counts.
                    journal.decided(index, &decided, &self.state);
                }
                call.stage = CallStage::Decided(decided);
            }
        }
    }

    /// Ends the open calls if the execution ends after this step, so that nobody waits for them.
    async fn close_open(&mut self) {
        let execution = self.state.execution();
        let is_over = self.is_last
            || self.has_failed
            || execution.is_none_or(|execution| execution.continuation.should_stop())
            || self.ports.control.called_off().is_some()
            || self.ended.iter().flatten().any(|execution| execution.trace.ends_run);
        if !is_over {
            return;
        }
        for open in std::mem::take(&mut self.open) {
            let written = self.written.get(open.index).cloned();
            let call = written.unwrap_or(open.tool_use.call);
            let ended = match open.tool_use.continuation {
                Some(_) => input_too_late(self.ports, call),
                None => never_made(self.ports, call),
            };
            self.end(open.index, ended).await;
        }
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
        while let Some((index, end)) = self.next_end(&mut working).await {
            match end {
                CallEnd::Ended(execution) => self.end(index, execution).await,
                CallEnd::NeedsInput(tool_use, input) => self.leave_open(index, tool_use, input).await,
            }
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
            CallStage::Open if let Some(cut) = &self.cut => {
                let ended = cut_off(self.ports, call, cut);
                self.end(index, ended).await;
                return None;
            }
            CallStage::Open if index >= self.ports.tools.max_calls() => {
                let (calls, max) = (self.ended.len(), self.ports.tools.max_calls());
                self.end(index, too_many(self.ports, call, calls, max)).await;
                return None;
            }
            CallStage::Open => (self.decide(index, ToolUse::undecided(call.clone())).await, false),
            CallStage::Decided(tool_use) | CallStage::Edited(tool_use) => (tool_use, false),
            CallStage::Begun(tool_use) => (tool_use, true),
            CallStage::Ended(execution) => {
                self.note_end(index, *execution);
                return None;
            }
        };
        if !was_begun
            && let Some(arguments) = self.requested(&tool_use)
            && let Some(need) = self.need(&tool_use, &arguments)
        {
            if self.ports.answers.is_subagent {
                self.end(index, cant_wait(self.ports, call)).await;
                return None;
            }
            self.open.push(OpenUse {
                index,
                tool_use,
                arguments,
                need,
            });
            return None;
        }
        Some(Next {
            index,
            call,
            tool_use,
            was_begun,
        })
    }

    /// Emits a call that is executed or left open next, and returns its arguments. Returns `None`
    /// for any other call, such as one with invalid arguments.
    fn requested(&self, tool_use: &ToolUse) -> Option<Value> {
        if tool_use.decision != ToolDecision::Execute || self.has_failed {
            return None;
        }
        let arguments = self.ports.tools.arguments(&tool_use.call, &self.context)?;
        let requested = AgentEvent::tool_call_requested(self.context.step_number, &tool_use.call);
        self.ports.events.emit(requested);
        Some(arguments)
    }

    /// Returns the need of a call, if it needs an answer.
    fn need(&self, tool_use: &ToolUse, arguments: &Value) -> Option<Need> {
        let (answers, name) = (&self.ports.answers, &tool_use.call.name);
        if answers.is_empty() {
            return None;
        }
        // An approval accepts one definition. If the tool has changed again, it is not enough.
        if let Some(need) = answers.need_of_changed(name) {
            return Some(need);
        }
        if tool_use.approved.is_some() || tool_use.continuation.is_some() {
            return None;
        }
        answers.need(name, arguments, &self.state.context().remembered_approvals)
    }

    /// Calls the hooks before a call, and notes their decision for the journal.
    async fn decide(&mut self, index: usize, undecided: ToolUse) -> ToolUse {
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
            return (index, Box::pin(ready((index, CallEnd::Ended(uncertain(ports, call))))));
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
        let traced = TracedWork::ToolCall {
            step_number: self.context.step_number,
            call_id: &call.id,
        };
        let context = ToolContext {
            trace: ports.events.span_of(traced),
            call_id: call.id.clone(),
            idempotency_key: ports.call_seed.key(self.context.step_number, index, &call),
            continuation: tool_use.continuation.clone(),
            ..self.context.clone()
        };
        let work = async move {
            let made = tool_use.clone();
            let mut execution = ports.execution(call, tool_use, &context).await;
            let end = match execution.trace.needs_input.take() {
                Some(input) => CallEnd::NeedsInput(made, *input),
                None => CallEnd::Ended(execution),
            };
            (index, end)
        };
        (index, Box::pin(work))
    }

    /// Starts a call whose beginning is persisted.
    fn go(&mut self, (index, call): (usize, Working<'a>)) -> Working<'a> {
        self.in_flight.push(index);
        call
    }

    /// Waits for the end of one of the calls. A stop cuts calls like a cancellation.
    async fn next_end(&self, working: &mut FuturesUnordered<Working<'a>>) -> Option<(usize, CallEnd)> {
        let (stop, cut) = (self.ports.control.stop(), &self.context.cancellation);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled(), if !cut.is_cancelled() => cut.cancel(),
                ended = working.next() => return ended,
            }
        }
    }

    /// Leaves a call open whose tool asks for input. A subagent can't wait for it.
    async fn leave_open(&mut self, index: usize, tool_use: ToolUse, input: NeededInput) {
        self.in_flight.retain(|other| *other != index);
        if self.ports.answers.is_subagent {
            let written = self.written.get(index).cloned();
            let call = written.unwrap_or(tool_use.call);
            self.end(index, cant_ask(self.ports, call)).await;
            return;
        }
        let NeededInput { message, schema, state } = input;
        let arguments = self.ports.tools.arguments(&tool_use.call, &self.context);
        self.open.push(OpenUse {
            index,
            tool_use: ToolUse {
                continuation: Some(Box::new(Continuation { state, input: None })),
                ..tool_use
            },
            arguments: arguments.unwrap_or_default(),
            need: self.ports.answers.need_of_input(message, schema),
        });
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

    /// Persists the noted entries, unless no call has an effect: then another attempt may make the
    /// whole step again.
    async fn flush(&self) -> Result<(), JournalFailed> {
        match &self.ports.journal {
            Some(journal) if self.has_effects => journal.flush().await,
            Some(journal) if journal.failure().is_some() => Err(JournalFailed),
            _ => Ok(()),
        }
    }
}
