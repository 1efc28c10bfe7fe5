//! Bounds an execution from outside its state: by budgets, spending, the clock, and cancellation,
//! stop and pause.
//!
//! Each execution has a ledger of what it and its subagents have spent. Limits read the ledger
//! before and during a step; the record contains the usage in the state. A *stop* has the same
//! effect as spent time; tools observe it through their token (`drivers/tool_use.rs`). A *pause*
//! asks the loop to return between two steps, so that another process can resume the execution.

use std::iter;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::state::{AgentState, ExecutionBudget, StopReason, StopSignal};
use crate::completion_limit::{CompletionLimit, limit};
use crate::journal::RecordSize;
use crate::reservation::Reservation;
use values::clock::{Clock, Deadline, SteadyClock, Timestamp};
use values::usage::{Cost, Price, Usage};

/// Names the run's record as the source of stop signals.
const RECORD: &str = "record";
/// Names the caller's cancellation as the source of stop signals.
const CANCELLATION: &str = "cancellation";
/// Names the caller's stop as the source of stop signals.
const STOP: &str = "stop";

/// The usage of an execution.
#[derive(Debug, Clone, Copy)]
struct SpentUsage {
    all: Usage,
    /// The usage of lost attempts, which no later attempt continues.
    lost: Usage,
}

/// Bounds one execution. Guards read it between steps, and the driver reads it during a step.
///
/// The control of a subagent refers to its parent's. The subagent's usage counts in both, and the
/// tighter limit applies.
#[derive(Debug)]
pub struct ExecutionControl {
    budget: ExecutionBudget,
    cancellation: CancellationToken,
    stop: CancellationToken,
    pause: CancellationToken,
    /// Nobody sets it while the execution is in progress.
    clock: Arc<dyn Clock>,
    /// The usage of the execution and of all its subagents.
    spent: Mutex<SpentUsage>,
    /// When the first attempt at the execution began, if this attempt is a later one.
    began_at: Option<Timestamp>,
    /// When the grace period after an interruption began.
    grace_began_at: OnceLock<Instant>,
    /// Shared by all executions of the run.
    record: Arc<RecordSize>,
    /// What the run has reserved of limits that it shares with others. Only its own execution has
    /// it.
    reservation: Option<Arc<Reservation>>,
    parent: Option<Arc<Self>>,
}

impl ExecutionControl {
    /// Bounds an execution. The token is cancelled when the caller no longer wants a result.
    pub fn new(budget: ExecutionBudget, cancellation: CancellationToken, clock: Arc<dyn Clock>) -> Self {
        Self {
            budget,
            cancellation,
            stop: CancellationToken::new(),
            pause: CancellationToken::new(),
            clock: Arc::new(SteadyClock::new(clock)),
            spent: Mutex::new(SpentUsage::NOTHING),
            began_at: None,
            grace_began_at: OnceLock::new(),
            record: Arc::default(),
            reservation: None,
            parent: None,
        }
    }

    /// Bounds the record of the run that the execution belongs to.
    #[must_use]
    pub fn with_record(self, record: RecordSize) -> Self {
        let record = Arc::new(record);
        Self { record, ..self }
    }

    /// Has each request to a model claim its cost from a reservation.
    #[must_use]
    pub fn with_reservation(self, reservation: Option<Arc<Reservation>>) -> Self {
        Self { reservation, ..self }
    }

    /// Sets the token of a stop: it is cancelled when the caller wants the execution to end with
    /// its present result.
    #[must_use]
    pub fn with_stop(self, stop: CancellationToken) -> Self {
        Self { stop, ..self }
    }

    /// Sets the token of a pause: it is cancelled to hand the execution over to another process.
    /// Only a loop with a journal checks it, before each step.
    #[must_use]
    pub fn with_pause(self, pause: CancellationToken) -> Self {
        Self { pause, ..self }
    }

    /// Counts the usage of earlier attempts. `reached` belongs to the resumed execution; `lost` is
    /// the rest.
    #[must_use]
    pub fn with_spent(self, reached: Usage, lost: Usage) -> Self {
        let all = reached + lost;
        Self {
            spent: Mutex::new(SpentUsage { all, lost }),
            ..self
        }
    }

    /// Measures time from the beginning of the first attempt, if an earlier one exists.
    #[must_use]
    pub fn with_beginning(self, began_at: Option<Timestamp>) -> Self {
        Self { began_at, ..self }
    }

    /// Bounds the execution of a subagent. `until` is when this execution's time is spent. The
    /// subagent is cancelled and stopped with this execution. It is never paused, since it is part
    /// of a step.
    #[must_use]
    pub fn for_subagent(self: &Arc<Self>, budget: ExecutionBudget, until: Option<Timestamp>) -> Self {
        let parent_limits = ExecutionBudget {
            deadline: until,
            ..ExecutionBudget::default()
        };
        let budget = budget.tightest(&parent_limits);
        Self {
            stop: self.stop.clone(),
            record: Arc::clone(&self.record),
            parent: Some(Arc::clone(self)),
            ..Self::new(budget, self.cancellation.clone(), Arc::clone(&self.clock))
        }
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.clock
    }

    /// Returns the time. It does not jump during an attempt.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the token that is cancelled when the caller no longer wants a result.
    pub fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Returns the token that is cancelled when the caller wants the execution to end with its
    /// present result.
    pub fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// Returns whether the execution must be handed over to another process.
    pub fn is_paused(&self) -> bool {
        self.pause.is_cancelled()
    }

    /// Counts the usage of a model call, here and in the executions above.
    pub fn spend(&self, usage: Usage) {
        self.count(|spent| spent.all = spent.all + usage);
    }

    /// Counts the usage of an earlier attempt at a resumed execution, here and in the executions
    /// above. This usage is no longer counted as lost, so it is not counted twice.
    pub fn resume(&self, usage: Usage) {
        self.count(|spent| {
            spent.all = spent.all + usage.since(spent.lost);
            spent.lost = spent.lost.since(usage);
        });
    }

    fn count(&self, count: impl Fn(&mut SpentUsage)) {
        for control in iter::successors(Some(self), |control| control.parent.as_deref()) {
            count(&mut control.spent_mut());
        }
    }

    /// Returns the usage of the execution and its subagents.
    pub fn spent(&self) -> Usage {
        self.spent_mut().all
    }

    /// Returns the usage of lost attempts.
    pub fn lost(&self) -> Usage {
        self.spent_mut().lost
    }

    /// Returns whether the cost of models is limited.
    pub fn limits_cost(&self) -> bool {
        self.budget.max_cost.is_some() || self.parent.as_ref().is_some_and(|parent| parent.limits_cost())
    }

    /// Returns whether tokens or the cost of models are limited.
    pub fn limits_usage(&self) -> bool {
        let is_limited = self.budget.max_tokens.is_some() || self.budget.max_cost.is_some();
        is_limited || self.reservation.is_some() || self.parent.as_ref().is_some_and(|parent| parent.limits_usage())
    }

    /// Returns the control of the run's own execution.
    pub(crate) fn of_run(&self) -> &Self {
        self.parent.as_ref().map_or(self, |parent| parent.of_run())
    }

    /// Returns what the run has reserved of limits that it shares with others.
    pub(crate) fn reservation(&self) -> Option<&Reservation> {
        self.reservation.as_deref()
    }

    /// Returns the signal of the caller's cancellation or, without one, of the caller's stop.
    pub fn called_off(&self) -> Option<StopSignal> {
        let is_cancelled = self.cancellation.is_cancelled();
        is_cancelled.then(cancelled).or_else(|| self.stopped())
    }

    /// Returns the signal of the caller's stop, unless the caller also cancelled.
    pub fn stopped(&self) -> Option<StopSignal> {
        let is_stopped = self.stop.is_cancelled() && !self.cancellation.is_cancelled();
        is_stopped.then(stopped)
    }

    /// Returns the signals of all limits that forbid the next step.
    pub fn limits_before_step(&self, state: &AgentState) -> impl Iterator<Item = StopSignal> + use<> {
        self.limits_after(state, state.step_count())
    }

    /// Returns the signals of all limits that forbid a step after the one in progress.
    pub fn limits_after_step(&self, state: &AgentState) -> impl Iterator<Item = StopSignal> + use<> {
        self.limits_after(state, state.step_count() + 1)
    }

    fn limits_after(&self, state: &AgentState, steps: usize) -> impl Iterator<Item = StopSignal> + use<> {
        let reached = [
            self.usage_limit(Usage::default()),
            self.time_limit_reached(state),
            self.steps_limit(steps),
            self.record_limit(),
        ];
        reached.into_iter().flatten()
    }

    /// Returns the size of the record of the run.
    pub fn record(&self) -> &RecordSize {
        &self.record
    }

    fn record_limit(&self) -> Option<StopSignal> {
        let max = self.record.reached()?;
        let message = format!("the record of the run has reached its limit of {max} bytes");
        let signal = StopSignal::new(StopReason::StopRequested, RECORD, message);
        Some(signal.with_figure("max_record_bytes", max).binding())
    }

    fn steps_limit(&self, steps: usize) -> Option<StopSignal> {
        let max = self.budget.max_steps.filter(|max| steps >= *max as usize)?;
        let message = "the steps are spent";
        Some(limit(StopReason::StepsLimitReached, "max_steps", json!(max), message))
    }

    /// Returns whether the step in progress is the last that the budget of steps allows.
    pub fn is_last_step(&self, state: &AgentState) -> bool {
        self.steps_limit(state.step_count() + 1).is_some()
    }

    /// Returns the signal of the limit on tokens or cost that is reached with `pending` included,
    /// if any.
    pub fn usage_limit(&self, pending: Usage) -> Option<StopSignal> {
        let usage = self.spent() + pending;
        let tokens = self.budget.max_tokens.filter(|max| usage.total_tokens >= *max);
        let cost = self.budget.max_cost.filter(|max| usage.known_cost() >= *max);
        let tokens = tokens.map(|max| ("max_tokens", json!(max), "the tokens are spent"));
        let cost = cost.map(|max| ("max_cost", json!(max), "the money is spent"));
        let own = tokens.or(cost);
        let own = own.map(|(name, value, message)| limit(StopReason::TokenLimitReached, name, value, message));
        own.or_else(|| self.parent.as_ref()?.usage_limit(pending))
    }

    /// Returns when the first attempt at the execution began. `started_at` is the start of this
    /// attempt.
    pub fn first_beginning(&self, started_at: Timestamp) -> Timestamp {
        self.began_at.map_or(started_at, |began_at| began_at.min(started_at))
    }

    /// Returns the instant at which the execution's time is spent.
    pub fn time_limit(&self, state: &AgentState) -> Option<Timestamp> {
        let started_at = state.execution().map(|execution| execution.started_at);
        let started_at = started_at.map(|started_at| self.first_beginning(started_at));
        let seconds = started_at.and_then(|started_at| self.budget.end_of_seconds(started_at));
        [seconds, self.budget.deadline].into_iter().flatten().min()
    }

    /// Returns the time at which the execution's budget of time is spent.
    pub fn deadline(&self, state: &AgentState) -> Option<Deadline> {
        Some(Deadline::new(self.time_limit(state)?, Arc::clone(&self.clock)))
    }

    /// Waits until the execution is cancelled or stopped or its time is spent, and returns the
    /// signal for it.
    pub async fn interrupted(&self, time_limit: Option<Timestamp>) -> StopSignal {
        tokio::select! {
            biased;
            () = self.cancellation.cancelled() => cancelled(),
            () = self.stop.cancelled() => stopped(),
            () = self.sleep_until(time_limit) => self.time_spent(time_limit),
        }
    }

    /// Waits like [`Self::interrupted`] and then for a grace period. The first caller starts the
    /// period; a later caller waits for the rest of it.
    pub async fn interrupted_for(&self, time_limit: Option<Timestamp>, grace: Duration) -> StopSignal {
        let signal = self.interrupted(time_limit).await;
        let end = *self.grace_began_at.get_or_init(Instant::now) + grace;
        if Instant::now() < end {
            tokio::time::sleep_until(end).await;
        }
        signal
    }

    /// Waits until the execution is cancelled, and returns the signal for it.
    pub async fn cancelled(&self) -> StopSignal {
        self.cancellation.cancelled().await;
        cancelled()
    }

    /// Returns the limit of the next completion, with `pending` counted as spent. It is the budget
    /// of tokens or cost that leaves the fewest tokens, here or above.
    pub fn completion_limit(&self, pending: Usage, price: Option<&Price>) -> Option<CompletionLimit> {
        let usage = self.spent() + pending;
        let by_tokens = self.budget.max_tokens.map(|max| CompletionLimit {
            tokens: max.saturating_sub(usage.total_tokens),
            reason: StopReason::TokenLimitReached,
            name: "max_tokens",
            value: json!(max),
        });
        let by_cost = self.budget.max_cost.zip(price).and_then(|(max, price)| {
            let left = max.saturating_sub(usage.known_cost());
            let is_spent = left == Cost::ZERO;
            let tokens = if is_spent { 0 } else { price.output_tokens_for(left)? };
            Some(CompletionLimit {
                tokens,
                reason: StopReason::TokenLimitReached,
                name: "max_cost",
                value: json!(max),
            })
        });
        let parent_limit = self
            .parent
            .as_ref()
            .and_then(|parent| parent.completion_limit(pending, price));
        let limits = [by_tokens, by_cost, parent_limit].into_iter().flatten();
        limits.min_by_key(|limit| limit.tokens)
    }

    fn time_limit_reached(&self, state: &AgentState) -> Option<StopSignal> {
        let until = self.time_limit(state).filter(|until| self.clock.now() >= *until)?;
        Some(self.time_spent(Some(until)))
    }

    /// Returns the signal of spent time: of the deadline, or else of the budget of seconds.
    fn time_spent(&self, until: Option<Timestamp>) -> StopSignal {
        let deadline = self
            .budget
            .deadline
            .filter(|deadline| until.is_none_or(|until| until == *deadline));
        let (name, value) = match (deadline, self.budget.max_seconds) {
            (None, Some(seconds)) => ("max_seconds", json!(seconds)),
            (deadline, _) => ("deadline", json!(deadline.or(until))),
        };
        limit(StopReason::TimeLimitReached, name, value, "the time is spent")
    }

    async fn sleep_until(&self, time_limit: Option<Timestamp>) {
        let Some(until) = time_limit else {
            return std::future::pending().await;
        };
        // Even a sleep of zero ends only at the next timer tick, and other work may be done before
        // it.
        if let Ok(left) = (until - self.clock.now()).to_std()
            && !left.is_zero()
        {
            tokio::time::sleep(left).await;
        }
    }

    fn spent_mut(&self) -> MutexGuard<'_, SpentUsage> {
        // A sum is written by a single assignment, so it stays valid if another thread panics.
        self.spent.lock()
    }
}

impl SpentUsage {
    const NOTHING: Self = Self {
        all: Usage::NOTHING,
        lost: Usage::NOTHING,
    };
}

fn cancelled() -> StopSignal {
    StopSignal::new(StopReason::UserRequested, CANCELLATION, "the run was cancelled").binding()
}

fn stopped() -> StopSignal {
    StopSignal::new(StopReason::UserRequested, STOP, "the run was stopped").binding()
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::clock::SystemClock;
    use values::usage::Cost;

    fn used(tokens: u32) -> Usage {
        Usage {
            input_tokens: tokens.into(),
            total_tokens: tokens.into(),
            cost: Cost::from_dollars(tokens.into()),
            ..Usage::default()
        }
    }

    #[test]
    fn what_is_resumed_is_lost_no_longer_and_spent_once() {
        // The persisted amount may lack recent usage of subagents, and may include lost attempts.
        for (persisted, below, spent, lost) in [
            (60, vec![60], 60, 0),
            (60, vec![20, 30], 60, 10),
            (60, vec![70], 70, 0),
            (60, vec![50, 30], 80, 0),
            (0, vec![20, 30], 50, 0),
        ] {
            let control = ExecutionControl::new(
                ExecutionBudget::default(),
                CancellationToken::new(),
                Arc::new(SystemClock),
            );
            let control = Arc::new(control.with_spent(used(5), used(persisted)));
            for tokens in &below {
                let subagent = control.for_subagent(ExecutionBudget::default(), None);
                subagent.resume(used(*tokens));
                assert_eq!(
                    (subagent.spent(), subagent.lost()),
                    (used(*tokens), used(0)),
                    "{below:?}"
                );
            }
            assert_eq!(
                (control.spent(), control.lost()),
                (used(5 + spent), used(lost)),
                "{below:?}"
            );
        }
    }
}
