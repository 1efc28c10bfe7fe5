//! Publishing a run: its session and record in one transaction, or its record alone. An unavailable store is tried again.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use tokio_util::sync::CancellationToken;

use super::export::Exported;
use super::live::LiveEvents;
use super::outcome::{Failure, Outcome};
use super::plan::RunPlan;
use super::service::RunService;
use crate::record::{RunEventPayload, RunRecord, StepRecord};
use crate::session::{Bundle, SessionHead};
use crate::store::{Commit, CommitError, StoreError};

/// How long the record of a run without session is tried to be stored before it is given up.
const RECORD_PATIENCE: Duration = Duration::from_mins(5);

impl RunService {
    /// Publishes the session with the run's record.
    pub(super) async fn publish(
        &self,
        plan: &RunPlan,
        live: &LiveEvents,
        exported: Exported,
        ended: Outcome,
    ) -> Outcome {
        let commit = Commit {
            tenant: plan.tenant.clone(),
            draft: exported.draft,
            run: Some((ended.record.clone(), without_messages(ended.steps.clone()))),
            conflict: plan.conflict,
            children: exported.children,
        };
        match self.commit_patiently(&commit, &live.cancellation).await {
            Ok(bundle) => {
                tell_committed(live, &bundle.head);
                Outcome {
                    committed: true,
                    ..ended
                }
            }
            Err(CommitError::Store(error)) if error.is_transient() && live.cancellation.is_cancelled() => {
                ended.unpublished(&live.cancellation)
            }
            Err(error) => ended.failing(&Failure::commit(&error)),
        }
    }

    /// Stores the record of a run that published nothing, and tells whether it is stored.
    ///
    /// A commit whose answer was lost may have taken effect after all. Then the store has a record of this run already, and that one is
    /// the outcome: what callers are told is what is stored.
    pub(super) async fn store_outcome(&self, plan: &RunPlan, live: &LiveEvents, outcome: Outcome) -> (Outcome, bool) {
        if outcome.committed {
            return (outcome, true);
        }
        let inserted = self
            .ports
            .store
            .run_insert(&plan.tenant, &outcome.record, &outcome.steps)
            .await;
        match inserted {
            Ok(true) => (outcome, true),
            Ok(false) => (self.published_outcome(plan, live, outcome).await, true),
            Err(error) => {
                warn_unstored(&outcome.record, &error);
                (outcome, false)
            }
        }
    }

    async fn published_outcome(&self, plan: &RunPlan, live: &LiveEvents, outcome: Outcome) -> Outcome {
        let summary = &outcome.record.summary;
        let found = tokio::try_join!(
            self.ports.store.run_lookup(&plan.tenant, summary.run_id),
            self.ports.store.session_lookup(&plan.tenant, summary.session_id),
        );
        match found {
            Ok((Some(record), head)) => {
                if let Some(head) = &head {
                    tell_committed(live, head);
                }
                Outcome {
                    record,
                    committed: true,
                    ..outcome
                }
            }
            Ok((None, _)) => outcome,
            Err(error) => {
                warn_unstored(&outcome.record, &error);
                outcome
            }
        }
    }

    /// Goes on trying to store the record; until then the board shows the run.
    pub(super) async fn store_record_later(&self, plan: &RunPlan, record: &RunRecord, steps: &[StepRecord]) {
        let insert = || self.ports.store.run_insert(&plan.tenant, record, steps);
        let retried = insert.retry(backoff(RECORD_PATIENCE)).when(StoreError::is_transient);
        tokio::select! {
            () = self.cancellation.cancelled() => tracing::error!(run_id = %record.summary.run_id, "a run's record is lost at shutdown"),
            stored = retried => if let Err(error) = stored {
                tracing::error!(run_id = %record.summary.run_id, error = &error as &dyn Error, "a run's record is given up");
            }
        }
    }

    /// The work is done and paid for: a store that is away for a moment must not lose it. A repeated commit is safe.
    ///
    /// A caller that goes away while it is tried again wants no session any more.
    async fn commit_patiently(
        &self,
        commit: &Commit,
        cancellation: &CancellationToken,
    ) -> Result<Arc<Bundle>, CommitError> {
        let attempt = || self.ports.sessions.commit(commit);
        let is_transient = |error: &CommitError| {
            let passes = matches!(error, CommitError::Store(error) if error.is_transient());
            passes && !cancellation.is_cancelled()
        };
        attempt
            .retry(backoff(self.settings.commit_patience))
            .when(is_transient)
            .await
    }
}

fn backoff(patience: Duration) -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(100))
        .with_max_delay(Duration::from_secs(5))
        .with_jitter()
        .without_max_times()
        .with_total_delay(Some(patience))
}

fn tell_committed(live: &LiveEvents, head: &SessionHead) {
    live.tell(RunEventPayload::SessionCommitted {
        session_id: head.session_id,
        parent_session_id: head.parent_session_id,
        root_hash: head.root_hash,
    });
}

/// The session holds the messages already, and those of subagents theirs. What an agent that failed has said, or those below it, is in
/// no session.
fn without_messages(mut steps: Vec<StepRecord>) -> Vec<StepRecord> {
    for step in &mut steps {
        step.messages = Vec::new();
        for subagent in step.subagents_mut().filter(|subagent| subagent.status.has_session()) {
            subagent.steps = without_messages(std::mem::take(&mut subagent.steps));
        }
    }
    steps
}

fn warn_unstored(record: &RunRecord, error: &StoreError) {
    tracing::warn!(run_id = %record.summary.run_id, error = error as &dyn Error, "a run's record can't be stored yet");
}
