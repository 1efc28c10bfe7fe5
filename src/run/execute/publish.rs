//! Publishes a run: its session and its record in one transaction, or its record alone.
//!
//! Retries while the store is unavailable. If the response of a commit was lost, reads the store
//! before the run counts as failed. So callers always see the stored record.
//!
//! Steps, including those of subagents, are stored without the messages that a session contains.
//! `read/mod.rs` adds these messages again. Of a run that publishes nothing, only the record is
//! stored, without its contents.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use backon::Retryable as _;

use super::webhook::deliveries_of;
use crate::run::context::{ActiveRun, HeldLease, RunContext, backoff};
use crate::run::plan::RunPlan;
use crate::run::work::{Executed, Failure, LiveEvents, Outcome};
use agent::record::{RunRecord, RunStatus, StepRecord};
use store::runs::{Recorded, RunEnd};
use store::sessions::{Commit, ThreadMove};
use store::{CommitError, StoreError};
use values::session::Bundle;

/// How long to retry storing the end of a light run, which no other worker would take over.
const RECORD_PATIENCE: Duration = Duration::from_mins(5);

/// Where the end of a run is stored.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "made once a run and never kept")]
pub(in crate::run) enum Stored {
    /// The run has ended here. If its record is not stored yet, the write is retried.
    Here { outcome: Outcome, is_stored: bool },
    /// Another worker has the run and stores its end.
    ByOtherWorker,
}

/// Returns how long a run waits for a store that is unavailable.
pub(in crate::run) fn patience(ctx: &RunContext, active: &ActiveRun) -> Duration {
    match active.lease() {
        Some(_) => RECORD_PATIENCE,
        None => ctx.settings.commit_patience,
    }
}

/// Publishes the session with the run's record.
pub(in crate::run) async fn publish(
    ctx: &RunContext,
    plan: &RunPlan,
    live: &LiveEvents,
    mut commit: Commit,
    mut ended: Outcome,
) -> Executed {
    let mut steps = without_messages(ended.steps.clone());
    // The history of a waiting session lacks the messages of its open step.
    if ended.record.summary.status == RunStatus::Waiting
        && let (Some(stored), Some(open)) = (steps.last_mut(), ended.steps.last())
    {
        stored.messages.clone_from(&open.messages);
    }
    commit.run = Some(run_end(ctx, live, &mut ended.record, steps));
    commit.thread = moved_thread(plan, live);
    let cancellation = &live.active.cancellation;
    match commit_patiently(ctx, &commit, live).await {
        Ok(published) => {
            live.published(&published.head);
            ended.record.summary.thread_moved = commit.thread.is_some().then_some(true);
            ended.is_committed = true;
            Executed::Ended(ended)
        }
        Err(CommitError::LeaseLost) => Executed::Left,
        // Rows that another worker has written for the run may refuse this commit.
        Err(_) if live.active.is_lost() => Executed::Left,
        Err(CommitError::Store(error)) if error.is_transient() && cancellation.is_cancelled() => {
            Executed::Ended(ended.unpublished(cancellation))
        }
        // Another attempt can continue the work, so it is not lost.
        Err(CommitError::Store(error)) if error.is_transient() && live.active.lease().is_some() => Executed::Left,
        Err(error) => Executed::Ended(ended.failing(Failure::commit(&error))),
    }
}

/// Stores the record of a run that published nothing.
///
/// A commit whose response was lost may have taken effect. Then the store already has a record
/// of this run, and that record is the outcome, since callers see the stored record.
pub(in crate::run) async fn store_outcome(ctx: &RunContext, live: &LiveEvents, mut outcome: Outcome) -> Stored {
    if outcome.is_committed {
        return Stored::Here {
            outcome,
            is_stored: true,
        };
    }
    let ended = &outcome.record.summary;
    if ended.publishes && !ended.status.has_session() {
        outcome.record.input = Arc::clone(live.input());
    }
    let end = run_end(ctx, live, &mut outcome.record, outcome.steps.clone());
    let (tenant, run_id) = (&live.active.tenant, live.active.run_id);
    // Read before, since afterwards nothing names the run whose calls are open again.
    let answered = match outcome.record.summary.base_session_id {
        Some(_) if live.active.lease().is_some() => {
            patiently(live, || ctx.store.run_lookup_by_answer(tenant, run_id)).await
        }
        _ => Ok(None),
    };
    let stored = match patiently(live, || ctx.store.run_record(tenant, &end)).await {
        Ok(Recorded::Now) => Stored::Here {
            outcome,
            is_stored: true,
        },
        Ok(Recorded::Before) => Stored::Here {
            outcome: stored_outcome(ctx, live, outcome).await,
            is_stored: true,
        },
        Ok(Recorded::LeaseLost) => Stored::ByOtherWorker,
        Err(error) => {
            warn_unstored(&error);
            // Another worker executes the end of the queued run again.
            if live.active.lease().is_some() {
                return Stored::ByOtherWorker;
            }
            Stored::Here {
                outcome,
                is_stored: false,
            }
        }
    };
    // The stored end may be a session that was committed after all.
    if let Stored::Here {
        outcome,
        is_stored: true,
    } = &stored
        && !outcome.record.summary.has_session()
    {
        ctx.publish_reopened(tenant, answered);
    }
    stored
}

/// Asks the store at the end of a run. For a queued run, retries while this process holds the
/// lease. For a light run, the retries come later.
async fn patiently<T, F: Future<Output = Result<T, StoreError>>>(
    live: &LiveEvents,
    ask: impl FnMut() -> F,
) -> Result<T, StoreError> {
    let is_retried =
        |error: &StoreError| error.is_transient() && live.active.lease().is_some() && !live.active.is_lost();
    ask.retry(backoff(RECORD_PATIENCE)).when(is_retried).await
}

async fn stored_outcome(ctx: &RunContext, live: &LiveEvents, outcome: Outcome) -> Outcome {
    let (tenant, summary) = (&live.active.tenant, &outcome.record.summary);
    let found = tokio::try_join!(
        ctx.store.run_lookup(tenant, summary.run_id),
        ctx.store.session_lookup(tenant, summary.session_id),
    );
    match found {
        Ok((Some(record), head)) => {
            if let Some(head) = &head {
                live.published(head);
            }
            Outcome {
                record,
                is_committed: true,
                ..outcome
            }
        }
        Ok((None, _)) => outcome,
        Err(error) => {
            warn_unstored(&error);
            outcome
        }
    }
}

/// Retries storing the record of a light run. Meanwhile the board shows the run.
pub(in crate::run) async fn store_record_later(
    ctx: &RunContext,
    live: &LiveEvents,
    record: &RunRecord,
    steps: &[StepRecord],
) {
    let end = run_end_of(ctx, live, record.clone(), steps.to_vec());
    let insert = || ctx.store.run_record(&live.active.tenant, &end);
    let retried = insert.retry(backoff(RECORD_PATIENCE)).when(StoreError::is_transient);
    tokio::select! {
        () = ctx.process.tasks.cancellation.cancelled() => tracing::error!("a run's record is lost at shutdown"),
        stored = retried => if let Err(error) = stored {
            tracing::error!(error = &error as &dyn Error, "a run's record is given up");
        }
    }
}

/// Creates the stored end of a run, and sets the number of the last event in the record.
fn run_end(ctx: &RunContext, live: &LiveEvents, record: &mut RunRecord, steps: Vec<StepRecord>) -> RunEnd {
    record.summary.event_count = live.begin_end(&record.summary);
    run_end_of(ctx, live, record.clone(), steps)
}

fn run_end_of(ctx: &RunContext, live: &LiveEvents, record: RunRecord, steps: Vec<StepRecord>) -> RunEnd {
    let (record, steps) = if record.summary.publishes {
        (record, steps)
    } else {
        (record.without_contents(), Vec::new())
    };
    if let Some(held) = &live.active.held_lease {
        held.ending();
    }
    // An earlier attempt may have reserved what this one has not.
    let is_metered = live.active.reservation.get().is_some() || record.summary.attempts > 1;
    let trace = live.active.trace.as_ref().and_then(|trace| trace.context());
    RunEnd {
        is_metered,
        deliveries: deliveries_of(
            &live.active.tenant,
            live.active.webhook.as_ref(),
            &record,
            trace,
            &*ctx.ids,
        ),
        record,
        steps,
        lease: live.active.lease().cloned(),
        events: live
            .active
            .held_lease
            .as_ref()
            .map(HeldLease::unpersisted)
            .unwrap_or_default(),
        applied: live.active.inbox.unacknowledged(),
    }
}

/// Commits with retries. The work is done and paid for, so a short outage of the store must not
/// lose it. A repeated commit is safe.
///
/// The retries end if the run is cancelled, for example since the caller disconnects. They also
/// end if another worker takes over the run.
async fn commit_patiently(ctx: &RunContext, commit: &Commit, live: &LiveEvents) -> Result<Arc<Bundle>, CommitError> {
    let active = &live.active;
    let attempt = || ctx.sessions.commit(commit);
    let is_transient = |error: &CommitError| {
        let passes = matches!(error, CommitError::Store(error) if error.is_transient());
        passes && !active.cancellation.is_cancelled() && !active.is_lost()
    };
    let retried = attempt.retry(backoff(patience(ctx, active))).when(is_transient);
    let retried = retried.notify(|error, _| {
        tracing::debug!(error = error as &dyn Error, "a session is committed later");
    });
    retried.await
}

/// Returns the move of the thread of the run, if the run moves one.
fn moved_thread(plan: &RunPlan, live: &LiveEvents) -> Option<ThreadMove> {
    let moves = live.active.held_lease.as_ref().is_some_and(|held| held.moves_thread);
    let thread = plan.request().thread.clone().filter(|_| moves);
    thread.map(ThreadMove::at_end)
}

/// Removes from steps the messages that a session contains. Subagents' sessions contain their
/// messages. The messages of a failed agent and of its subagents stay, since no session contains
/// them.
fn without_messages(mut steps: Vec<StepRecord>) -> Vec<StepRecord> {
    for step in &mut steps {
        step.messages = Vec::new();
        for subagent in step.subagents_mut().filter(|subagent| subagent.status.has_session()) {
            subagent.steps = without_messages(std::mem::take(&mut subagent.steps));
        }
    }
    steps
}

fn warn_unstored(error: &StoreError) {
    tracing::warn!(error = error as &dyn Error, "a run's record can't be stored yet");
}
