//! Stops, cancels and steers runs, in whichever process they are active.
//!
//! A queued run learns of it from the store. A signal over the board tells its worker to read the
//! store; without the signal, the worker notices with the next renewal of the lease. A light run of
//! another process learns of it from the board alone.

use std::sync::Arc;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::active::ActiveRun;
use super::error::Refusal;
use super::request::InputMessage;
use super::service::RunService;
use crate::board::{AddressedSignal, RunSignal};
use crate::ids::{MessageId, RunId};
use crate::message::{Message, MessageTags};
use crate::record::{RunControl, RunRecord, RunSummary, SteeringMessage, SteeringStatus};
use crate::store::{MessagePut, StoreError};
use crate::tenant::TenantId;

/// The most runs of which callers want something at once. Of others is heard when their leases are renewed.
const MAX_LOOKS: usize = 1_024;

/// What a stop or a cancellation is answered with.
#[derive(Debug, Clone)]
pub struct ControlAnswer {
    /// The run as it stands.
    pub run: RunRecord,
    /// Whether the run had ended before, so that nothing came of it.
    pub came_too_late: bool,
}

impl RunService {
    /// Says how a run shall end. May be repeated; a run that has ended stays as it is.
    pub async fn control(
        self: &Arc<Self>,
        tenant: &TenantId,
        run_id: RunId,
        control: RunControl,
    ) -> Result<ControlAnswer, Refusal> {
        let active = self.active.find(tenant, run_id);
        // A run that is at work here hears of it before the store does.
        let is_here = active.is_some();
        if let Some(active) = &active {
            active.control(control);
        }
        if active.is_some_and(|active| active.tenure.is_none()) {
            // Nobody else has to know.
        } else if self.ports.store.run_control(tenant, run_id, control).await? {
            self.end_waiting(tenant, run_id).await?;
            self.tell(tenant, run_id, RunSignal::Look).await;
        } else {
            let run = self.known(tenant, run_id).await?;
            if run.summary.status.is_terminal() {
                return Ok(ControlAnswer {
                    run,
                    // It may have ended because it has heard.
                    came_too_late: !is_here,
                });
            }
            if !self.tell(tenant, run_id, RunSignal::Control(control)).await {
                return Err(Refusal::Unreachable { run_id });
            }
        }
        Ok(ControlAnswer {
            run: self.known(tenant, run_id).await?,
            came_too_late: false,
        })
    }

    /// Adds a message that the model sees at the run's next step. A repeated key is answered with what has become of the first message.
    pub async fn steer(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        key: String,
        message: InputMessage,
    ) -> Result<SteeringStatus, Refusal> {
        let message = SteeringMessage {
            message: self.steering_message(SteeringMessage::id(run_id, &key), message),
            key,
        };
        let active = self.active.find(tenant, run_id);
        if let Some(active) = active.filter(|active| active.tenure.is_none()) {
            return active.inbox.add(message).ok_or(Refusal::TooMuchSaid { run_id });
        }
        match self.ports.store.message_insert(tenant, run_id, &message).await? {
            MessagePut::Known(status) => {
                self.tell(tenant, run_id, RunSignal::Look).await;
                return Ok(status);
            }
            MessagePut::Full => return Err(Refusal::TooMuchSaid { run_id }),
            MessagePut::NoRun => (),
        }
        let run = self.known(tenant, run_id).await?;
        if run.summary.status.is_terminal() {
            return self.late_status(tenant, &run.summary, message.message.id).await;
        }
        if self.tell(tenant, run_id, RunSignal::Message(Box::new(message))).await {
            Ok(SteeringStatus::Received)
        } else {
            Err(Refusal::Unreachable { run_id })
        }
    }

    /// Has a run give way that was told to stop: where it waits it ends at once, and where it works as soon as it hears. Whoever interrupts
    /// it does not wait for that.
    pub(super) fn interrupt(self: &Arc<Self>, tenant: &TenantId, run_id: RunId) {
        let (service, tenant) = (Arc::clone(self), tenant.clone());
        self.tasks.spawn(async move {
            if let Err(error) = service.end_waiting(&tenant, run_id).await {
                // A worker ends it when its turn comes.
                tracing::debug!(%run_id, error = &error as &dyn std::error::Error, "an interrupted run ends later");
            }
            service.tell(&tenant, run_id, RunSignal::Look).await;
        });
    }

    /// Ends a run that waits in the queue, here and now: nobody waits for a worker to be told that nothing is to be done.
    async fn end_waiting(self: &Arc<Self>, tenant: &TenantId, run_id: RunId) -> Result<(), StoreError> {
        let (service, tenant) = (Arc::clone(self), tenant.clone());
        // A task of its own, since a run that is leased and not begun would lie idle until its lease expires.
        let leasing = self.tasks.spawn(async move {
            service.read_lease_time().await;
            let terms = service.lease_terms();
            let leasing = service.ports.store.run_lease_now(&terms, &tenant, run_id);
            let Ok(leased) = timeout(service.lease_patience(), leasing).await else {
                // A worker ends it when its turn comes, or when this lease expires if it was taken after all.
                tracing::warn!(%run_id, "a run that shall end is not leased in time");
                return Ok(());
            };
            if let Some(leased) = leased? {
                Box::pin(service.attempt(leased, terms.until, None, None)).await;
            }
            Ok(())
        });
        // Only a fault of ours ends the task otherwise.
        leasing.await.unwrap_or(Ok(()))
    }

    /// Hears what other processes say to the runs of this one, until the service ends. Nothing of it waits for the store but what is there.
    pub(super) async fn hear_signals(self: Arc<Self>) {
        let mut signals = self.ports.board.signals();
        let (wanted, mut looks) = mpsc::channel(MAX_LOOKS);
        let hearing = async {
            while let Some(signal) = signals.next().await {
                if let Some(active) = self.hear(signal) {
                    // Where there is no room, the renewal of its lease comes to it.
                    let _ = wanted.try_send(active);
                }
            }
        };
        let looking = async {
            let mut runs = Vec::new();
            while looks.recv_many(&mut runs, MAX_LOOKS).await > 0 {
                self.look(&mut runs).await;
                runs.clear();
            }
        };
        tokio::select! {
            () = self.ended.cancelled() => (),
            () = hearing => (),
            () = looking => (),
        }
    }

    /// Returns the run if more is to be read of it in the store.
    fn hear(&self, (tenant, run_id, signal): AddressedSignal) -> Option<Arc<ActiveRun>> {
        let active = self.active.find(&tenant, run_id)?;
        match signal {
            RunSignal::Look => return active.lease().is_some().then_some(active),
            RunSignal::Control(control) => active.control(control),
            RunSignal::Message(message) => {
                if active.inbox.add(*message).is_none() {
                    tracing::warn!(%run_id, "a message to a run is dropped: it has as many as it takes");
                }
            }
        }
        None
    }

    /// Reads what callers want of runs at work, of each once. What can't be read now comes with the renewal of the lease.
    async fn look(&self, runs: &mut Vec<Arc<ActiveRun>>) {
        runs.sort_unstable_by_key(|run| run.run_id);
        runs.dedup_by_key(|run| run.run_id);
        // What was let go of is for others to take over.
        runs.retain(|run| !run.is_lost());
        match self.renew_leases(runs).await {
            Ok(told) => self.hand_messages(&told).await,
            Err(error) => {
                tracing::debug!(
                    error = &error as &dyn std::error::Error,
                    "what callers want of runs comes later"
                );
            }
        }
    }

    /// Hands messages of the store to the run: at first all of them, and then those that nobody has applied.
    pub(super) async fn fetch_messages(&self, active: &ActiveRun) -> Result<(), StoreError> {
        let (store, inbox) = (&self.ports.store, &active.inbox);
        let waiting = if inbox.is_filled() {
            store.waiting_message_list(&active.tenant, active.run_id).await?
        } else {
            let messages = store.run_message_list(&active.tenant, active.run_id).await?;
            // One that was applied is applied again where the run begins anew.
            let waiting = messages
                .into_iter()
                .filter(|message| message.status != SteeringStatus::TooLate);
            waiting.map(|message| message.message).collect()
        };
        for message in waiting {
            // The store has seen to it that there is room.
            inbox.add(message);
        }
        inbox.filled();
        Ok(())
    }

    /// Passes a signal on, to this process without any detour. Tells whether anybody heard it.
    pub(super) async fn tell(&self, tenant: &TenantId, run_id: RunId, signal: RunSignal) -> bool {
        if self.active.find(tenant, run_id).is_some() {
            if let Some(active) = self.hear((tenant.clone(), run_id, signal)) {
                self.look(&mut vec![active]).await;
            }
            return true;
        }
        let sent = self.ports.board.signal_send(tenant, run_id, signal).await;
        sent.unwrap_or_else(|error| {
            tracing::debug!(%run_id, error = &error as &dyn std::error::Error, "a signal is not sent");
            false
        })
    }

    async fn known(&self, tenant: &TenantId, run_id: RunId) -> Result<RunRecord, Refusal> {
        match self.run_lookup(tenant, run_id).await? {
            Some(run) => Ok(run),
            None => Err(self.absent_run(tenant, run_id).await),
        }
    }

    /// Finds out what has become of a message when nobody has kept its status: the session of the run holds it or does not. A run
    /// without a session has applied nothing that lasts.
    async fn late_status(
        &self,
        tenant: &TenantId,
        run: &RunSummary,
        message_id: MessageId,
    ) -> Result<SteeringStatus, Refusal> {
        if !run.status.has_session() {
            return Ok(SteeringStatus::TooLate);
        }
        let messages = self.ports.store.new_message_list(tenant, run.session_id).await?;
        let is_held = messages.is_some_and(|messages| messages.iter().any(|message| message.id == message_id));
        Ok(if is_held {
            SteeringStatus::Applied
        } else {
            SteeringStatus::TooLate
        })
    }

    fn steering_message(&self, id: MessageId, message: InputMessage) -> Message {
        Message {
            name: message.name,
            metadata: message.metadata,
            tags: MessageTags {
                section: message.section,
                ..MessageTags::default()
            },
            ..Message::new(id, message.role, message.content, self.ports.clock.now())
        }
    }
}
