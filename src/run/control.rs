//! Stops, cancels and steers runs, in whichever process they are active.
//!
//! For a run of the queue the store holds the request. A control message over the board says that
//! there is one, and the next renewal of the lease reads it if the message is lost. A run that
//! lives in one process only receives the request itself over the board.

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::active::{ActiveRun, ActiveRuns};
use super::error::Refusal;
use super::queue::{Attempts, LeaseRenewal, Leases};
use super::read::RunReader;
use super::request::InputMessage;
use super::tasks::RunTasks;
use crate::board::{AddressedMessage, Board, ControlMessage};
use crate::clock::Clock;
use crate::ids::{MessageId, RunId};
use crate::record::{RunControl, RunRecord, RunSummary, SteeringMessage, SteeringStatus};
use crate::store::{MessagePut, Store, StoreError};
use crate::tenant::TenantId;

/// The most runs that wait to be read after a message. Others are read when their leases are
/// renewed.
const MAX_PENDING: usize = 1_024;

/// What became of a stop or a cancellation.
#[derive(Debug, Clone)]
pub struct ControlOutcome {
    /// The run as it stands.
    pub run: RunRecord,
    /// Whether the run had ended before, so that nothing came of it.
    pub came_too_late: bool,
}

/// Stops, cancels and steers runs.
#[derive(Debug)]
pub struct RunController {
    /// Holds what callers want of runs of the queue.
    pub store: Arc<dyn Store>,
    /// Sends control messages to other processes, and receives theirs.
    pub board: Arc<Board>,
    /// The runs at work here.
    pub active: Arc<ActiveRuns>,
    /// Shows how runs stand.
    pub reader: Arc<RunReader>,
    /// Says on which terms a run is leased that waits and shall end.
    pub leases: Arc<Leases>,
    /// Reads what callers want of runs at work here.
    pub renewal: Arc<LeaseRenewal>,
    /// Ends a run that waits.
    pub attempts: Arc<Attempts>,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
    /// Where work goes on after its callers have gone.
    pub tasks: RunTasks,
}

impl RunController {
    /// Says how a run shall end. May be repeated; a run that has ended stays as it is.
    pub async fn control(
        self: &Arc<Self>,
        tenant: &TenantId,
        run_id: RunId,
        control: RunControl,
    ) -> Result<ControlOutcome, Refusal> {
        let active = self.active.find(tenant, run_id);
        // A run that is at work here is stopped before the store knows.
        let is_here = active.is_some();
        if let Some(active) = &active {
            active.control(control);
        }
        if active.is_some_and(|active| active.held_lease.is_none()) {
            // Nobody else has to know.
        } else if self.store.run_control(tenant, run_id, control).await? {
            self.end_waiting(tenant, run_id).await?;
            self.send(tenant, run_id, ControlMessage::Refresh).await;
        } else {
            let run = self.known(tenant, run_id).await?;
            if run.summary.status.is_terminal() {
                return Ok(ControlOutcome {
                    run,
                    // This request may have ended it.
                    came_too_late: !is_here,
                });
            }
            if !self.send(tenant, run_id, ControlMessage::Control(control)).await {
                return Err(Refusal::Unreachable { run_id });
            }
        }
        Ok(ControlOutcome {
            run: self.known(tenant, run_id).await?,
            came_too_late: false,
        })
    }

    /// Adds a message that the model sees at the run's next step. A repeated key is answered with
    /// what has become of the first message.
    pub async fn steer(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        key: String,
        message: InputMessage,
    ) -> Result<SteeringStatus, Refusal> {
        let id = SteeringMessage::id(run_id, &key);
        let message = message.into_message(id, self.clock.now());
        let message = SteeringMessage { key, message };
        let active = self.active.find(tenant, run_id);
        if let Some(active) = active.filter(|active| active.held_lease.is_none()) {
            return active.inbox.add(message).ok_or(Refusal::TooMuchSaid { run_id });
        }
        match self.store.message_insert(tenant, run_id, &message).await? {
            MessagePut::Known(status) => {
                self.send(tenant, run_id, ControlMessage::Refresh).await;
                return Ok(status);
            }
            MessagePut::Full => return Err(Refusal::TooMuchSaid { run_id }),
            MessagePut::NoRun => (),
        }
        let run = self.known(tenant, run_id).await?;
        if run.summary.status.is_terminal() {
            return self.late_status(tenant, &run.summary, message.message.id).await;
        }
        if self
            .send(tenant, run_id, ControlMessage::Message(Box::new(message)))
            .await
        {
            Ok(SteeringStatus::Received)
        } else {
            Err(Refusal::Unreachable { run_id })
        }
    }

    /// Ends a run that another one interrupts. The store holds the request to stop it. A run that
    /// waits ends at once, and one at work when the message arrives. The caller does not wait for
    /// that.
    pub(super) fn interrupt(self: &Arc<Self>, tenant: &TenantId, run_id: RunId) {
        let (controller, tenant) = (Arc::clone(self), tenant.clone());
        self.tasks.runs.spawn(async move {
            if let Err(error) = controller.end_waiting(&tenant, run_id).await {
                // A worker ends it when its turn comes.
                tracing::debug!(%run_id, error = &error as &dyn std::error::Error, "an interrupted run ends later");
            }
            controller.send(&tenant, run_id, ControlMessage::Refresh).await;
        });
    }

    /// Ends a run that waits in the queue at once, so that its caller need not wait for a worker.
    async fn end_waiting(self: &Arc<Self>, tenant: &TenantId, run_id: RunId) -> Result<(), StoreError> {
        let (controller, tenant) = (Arc::clone(self), tenant.clone());
        // A task of its own, since a run that is leased and not begun would lie idle until its
        // lease expires.
        let leasing = self.tasks.runs.spawn(async move {
            let leases = &controller.leases;
            leases.read_time().await;
            let terms = leases.terms();
            let leasing = controller.store.run_lease_now(&terms, &tenant, run_id);
            let Ok(leased) = timeout(leases.patience(), leasing).await else {
                // A worker ends it when its turn comes, or when this lease expires if it was taken
                // after all.
                tracing::warn!(%run_id, "a run that shall end is not leased in time");
                return Ok(());
            };
            if let Some(leased) = leased? {
                let attempts = Arc::clone(&controller.attempts);
                Box::pin(attempts.make(leased, terms.until, None, None)).await;
            }
            Ok(())
        });
        // Only a fault of ours ends the task otherwise.
        leasing.await.unwrap_or(Ok(()))
    }

    /// Receives the control messages of other processes until the service ends. Messages that need
    /// no store do not wait for it.
    pub(super) async fn receive_messages(self: Arc<Self>) {
        let mut messages = self.board.control_messages();
        let (pending, mut signalled) = mpsc::channel(MAX_PENDING);
        let receiving = async {
            while let Some(message) = messages.next().await {
                if let Some(active) = self.receive(message) {
                    // Where there is no room, the renewal of its lease comes to it.
                    let _ = pending.try_send(active);
                }
            }
        };
        let reading = async {
            let mut runs = Vec::new();
            while signalled.recv_many(&mut runs, MAX_PENDING).await > 0 {
                self.read_requests(&mut runs).await;
                runs.clear();
            }
        };
        tokio::select! {
            () = self.tasks.ended.cancelled() => (),
            () = receiving => (),
            () = reading => (),
        }
    }

    /// Returns the run if more is to be read of it in the store.
    fn receive(&self, (tenant, run_id, message): AddressedMessage) -> Option<Arc<ActiveRun>> {
        let active = self.active.find(&tenant, run_id)?;
        match message {
            ControlMessage::Refresh => return active.lease().is_some().then_some(active),
            ControlMessage::Control(control) => active.control(control),
            ControlMessage::Message(message) => {
                if active.inbox.add(*message).is_none() {
                    tracing::warn!(%run_id, "a message to a run is dropped: it has as many as it takes");
                }
            }
        }
        None
    }

    /// Reads what callers want of runs at work, once for each run. If that fails, the renewal of
    /// the lease reads it.
    async fn read_requests(&self, runs: &mut Vec<Arc<ActiveRun>>) {
        runs.sort_unstable_by_key(|run| run.run_id);
        runs.dedup_by_key(|run| run.run_id);
        // Others take over what this process has let go of.
        runs.retain(|run| !run.is_lost());
        match self.renewal.renew(runs).await {
            Ok(with_messages) => self.renewal.deliver_messages(&with_messages).await,
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "what callers want of runs is read later"
                );
            }
        }
    }

    /// Sends a control message to the process that executes a run. Returns whether any process
    /// received it.
    async fn send(&self, tenant: &TenantId, run_id: RunId, message: ControlMessage) -> bool {
        if self.active.find(tenant, run_id).is_some() {
            if let Some(active) = self.receive((tenant.clone(), run_id, message)) {
                self.read_requests(&mut vec![active]).await;
            }
            return true;
        }
        self.board.control_send(tenant, run_id, message).await
    }

    async fn known(&self, tenant: &TenantId, run_id: RunId) -> Result<RunRecord, Refusal> {
        match self.reader.run_lookup(tenant, run_id).await? {
            Some(run) => Ok(run),
            None => Err(self.reader.absent_run(tenant, run_id).await),
        }
    }

    /// Returns the status of a message to a run that has ended, if it was not stored. The message
    /// is applied if the session of the run holds it. A run without a session has applied nothing
    /// that lasts.
    async fn late_status(
        &self,
        tenant: &TenantId,
        run: &RunSummary,
        message_id: MessageId,
    ) -> Result<SteeringStatus, Refusal> {
        if !run.status.has_session() {
            return Ok(SteeringStatus::TooLate);
        }
        let messages = self.store.new_message_list(tenant, run.session_id).await?;
        let is_held = messages.is_some_and(|messages| messages.iter().any(|message| message.id == message_id));
        Ok(if is_held {
            SteeringStatus::Applied
        } else {
            SteeringStatus::TooLate
        })
    }
}
