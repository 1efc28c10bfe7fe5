//! Stops, cancels and steers runs that are active in any process.
//!
//! The request to a queued run is persisted in the store. A control message over the board notifies
//! its process. If the message is lost, the process reads the request when it next renews the
//! lease. A light run, which exists in one process only, receives the request itself over the
//! board.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::context::{ActiveRun, RunContext};
use super::queue::{attempt, deliver_messages, renew};
use super::read::{absent_run, end_of, run_lookup};
use super::refusal::Refusal;
use super::request::InputMessage;
use agent::record::{RunControl, RunRecord, RunSummary, SteeringMessage, SteeringStatus};
use board::{AddressedMessage, ControlMessage};
use store::StoreError;
use store::queue::MessagePut;
use values::ids::{MessageId, RunId};
use values::tenant::TenantId;

/// The most runs whose requests wait to be read after a message. The requests of further runs are
/// read when their leases are renewed.
const MAX_PENDING: usize = 1_024;

/// How long a caller who ends a run waits for its end.
const END_PATIENCE: Duration = Duration::from_secs(5);

/// The result of a stop or a cancellation.
#[derive(Debug, Clone)]
pub struct ControlOutcome {
    /// The current record of the run.
    pub run: RunRecord,
    /// Whether the run had already ended, so that the request had no effect.
    pub came_too_late: bool,
}

/// Stops or cancels a run. May be repeated. Does not change a run that has ended.
pub async fn control_run(
    ctx: &Arc<RunContext>,
    tenant: &TenantId,
    run_id: RunId,
    control: RunControl,
) -> Result<ControlOutcome, Refusal> {
    let active = ctx.process.active.find(tenant, run_id);
    // Stops a run of this process before it writes to the store.
    let is_here = active.is_some();
    if let Some(active) = &active {
        active.control(control);
    }
    if active.is_some_and(|active| active.held_lease.is_none()) {
        // A light run of this process: the store and other processes need no message.
    } else if ctx.store.run_control(tenant, run_id, control).await? {
        end_waiting(ctx, tenant, run_id).await?;
        send(ctx, tenant, run_id, ControlMessage::Refresh).await;
    } else {
        let run = known(ctx, tenant, run_id).await?;
        if run.summary.status.is_terminal() {
            return Ok(ControlOutcome {
                run,
                // If the run was active here, this request may have ended it.
                came_too_late: !is_here,
            });
        }
        if !send(ctx, tenant, run_id, ControlMessage::Control(control)).await {
            return Err(Refusal::Unreachable { run_id });
        }
    }
    Ok(ControlOutcome {
        run: known(ctx, tenant, run_id).await?,
        came_too_late: false,
    })
}

/// Stops or cancels a run, and waits a few seconds for its end. Returns the run as it is then. It
/// is still at work if the end takes longer, or if this process shuts down.
pub async fn end_run(
    ctx: &Arc<RunContext>,
    tenant: &TenantId,
    run_id: RunId,
    control: RunControl,
) -> Result<RunSummary, Refusal> {
    let run = control_run(ctx, tenant, run_id, control).await?.run.summary;
    if run.status.is_terminal() {
        return Ok(run);
    }
    let ended = timeout(END_PATIENCE, end_of(ctx, tenant, run_id)).await;
    let ended = ended.unwrap_or(Ok(None))?;
    Ok(ended.map_or(run, |ended| ended.summary.clone()))
}

/// Waits a few seconds for the end of a run of this process, if somebody has stopped or cancelled
/// it. Returns whether that is so.
pub async fn await_ending(ctx: &Arc<RunContext>, tenant: &TenantId, run_id: RunId) -> Result<bool, Refusal> {
    let active = ctx.process.active.find(tenant, run_id);
    let is_ending = active.is_some_and(|active| active.is_ending());
    if is_ending {
        let ended = timeout(END_PATIENCE, end_of(ctx, tenant, run_id)).await;
        ended.unwrap_or(Ok(None))?;
    }
    Ok(is_ending)
}

/// Adds a message that the model receives at the run's next step. If the key is repeated,
/// returns the status of the first message.
pub async fn steer_run(
    ctx: &Arc<RunContext>,
    tenant: &TenantId,
    run_id: RunId,
    key: String,
    message: InputMessage,
) -> Result<SteeringStatus, Refusal> {
    let id = SteeringMessage::id(run_id, &key);
    let message = message.into_message(id, ctx.clock.now());
    let message = SteeringMessage { key, message };
    let active = ctx.process.active.find(tenant, run_id);
    if let Some(active) = active.filter(|active| active.held_lease.is_none()) {
        return active.inbox.add(message).ok_or(Refusal::TooMuchSaid { run_id });
    }
    match ctx.store.message_insert(tenant, run_id, &message).await? {
        MessagePut::Known(status) => {
            send(ctx, tenant, run_id, ControlMessage::Refresh).await;
            return Ok(status);
        }
        MessagePut::Full => return Err(Refusal::TooMuchSaid { run_id }),
        MessagePut::NoRun => (),
    }
    let run = known(ctx, tenant, run_id).await?;
    if run.summary.status.is_terminal() {
        return late_status(ctx, tenant, &run.summary, message.message.id).await;
    }
    if send(ctx, tenant, run_id, ControlMessage::Message(Box::new(message))).await {
        Ok(SteeringStatus::Received)
    } else {
        Err(Refusal::Unreachable { run_id })
    }
}

/// Ends a run that another one interrupts. The request to stop it is already stored. A waiting
/// run ends at once, and an active one when the message arrives. Does not wait for the end.
pub(super) fn interrupt(ctx: &Arc<RunContext>, tenant: &TenantId, run_id: RunId) {
    let owned = (Arc::clone(ctx), tenant.clone());
    ctx.process.tasks.runs.spawn(async move {
        let (ctx, tenant) = &owned;
        if let Err(error) = end_waiting(ctx, tenant, run_id).await {
            // A worker ends the run when its turn comes.
            tracing::debug!(%run_id, error = &error as &dyn std::error::Error, "an interrupted run ends later");
        }
        send(ctx, tenant, run_id, ControlMessage::Refresh).await;
    });
}

/// Ends a run that waits in the queue at once, so that its caller need not wait for a worker.
async fn end_waiting(ctx: &Arc<RunContext>, tenant: &TenantId, run_id: RunId) -> Result<(), StoreError> {
    let owned = (Arc::clone(ctx), tenant.clone());
    // Runs in a separate task. If the caller were cancelled after the lease, the run would stay
    // idle until the lease expires.
    let leasing = ctx.process.tasks.runs.spawn(async move {
        let (ctx, tenant) = &owned;
        let leases = &ctx.process.leases;
        leases.read_time(&*ctx.store).await;
        let terms = leases.terms();
        let leasing = ctx.store.run_lease_now(&terms, tenant, run_id);
        let Ok(leased) = timeout(leases.patience(), leasing).await else {
            // A worker ends the run when its turn comes, or when this lease expires if it took
            // effect.
            tracing::warn!(%run_id, "a run that shall end is not leased in time");
            return Ok(());
        };
        if let Some(leased) = leased? {
            Box::pin(attempt(Arc::clone(ctx), leased, terms.until, None, None)).await;
        }
        Ok(())
    });
    // Otherwise the task panicked.
    leasing.await.unwrap_or(Ok(()))
}

/// Receives the control messages of other processes until the service ends. Messages that need
/// no read from the store do not wait for the store.
pub(super) async fn receive_messages(ctx: Arc<RunContext>) {
    let mut messages = ctx.board.control_messages();
    let (pending, mut signalled) = mpsc::channel(MAX_PENDING);
    let receiving = async {
        while let Some(message) = messages.next().await {
            if let Some(active) = receive(&ctx, message) {
                // If the channel is full, the renewal of the lease reads the request.
                let _ = pending.try_send(active);
            }
        }
    };
    let reading = async {
        let mut runs = Vec::new();
        while signalled.recv_many(&mut runs, MAX_PENDING).await > 0 {
            read_requests(&ctx, &mut runs).await;
            runs.clear();
        }
    };
    tokio::select! {
        () = ctx.process.tasks.ended.cancelled() => (),
        () = receiving => (),
        () = reading => (),
    }
}

/// Applies a control message. Returns the run if its request must be read from the store.
fn receive(ctx: &Arc<RunContext>, (tenant, run_id, message): AddressedMessage) -> Option<Arc<ActiveRun>> {
    if message == ControlMessage::HasReaders {
        answer_for_readers(ctx, tenant, run_id);
        return None;
    }
    let active = ctx.process.active.find(&tenant, run_id)?;
    match message {
        ControlMessage::HasReaders => (),
        ControlMessage::IsRead => active.note_reader(),
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

/// Responds to the process that executes a run if its events have readers here.
fn answer_for_readers(ctx: &Arc<RunContext>, tenant: TenantId, run_id: RunId) {
    if ctx.process.event_readers.has(run_id) {
        let owned = Arc::clone(ctx);
        ctx.process.tasks.runs.spawn(async move {
            owned.board.control_send(&tenant, run_id, ControlMessage::IsRead).await;
        });
    }
}

/// Reads the requests to active runs, once for each run. If that fails, the renewal of the
/// lease reads them.
async fn read_requests(ctx: &RunContext, runs: &mut Vec<Arc<ActiveRun>>) {
    runs.sort_unstable_by_key(|run| run.run_id);
    runs.dedup_by_key(|run| run.run_id);
    // Other workers take over runs whose leases this process has lost.
    runs.retain(|run| !run.is_lost());
    match renew(ctx, runs).await {
        Ok(with_messages) => deliver_messages(ctx, &with_messages).await,
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
async fn send(ctx: &Arc<RunContext>, tenant: &TenantId, run_id: RunId, message: ControlMessage) -> bool {
    if ctx.process.active.find(tenant, run_id).is_some() {
        if let Some(active) = receive(ctx, (tenant.clone(), run_id, message)) {
            read_requests(ctx, &mut vec![active]).await;
        }
        return true;
    }
    ctx.board.control_send(tenant, run_id, message).await
}

async fn known(ctx: &RunContext, tenant: &TenantId, run_id: RunId) -> Result<RunRecord, Refusal> {
    match run_lookup(ctx, tenant, run_id).await? {
        Some(run) => Ok(run),
        None => Err(absent_run(ctx, tenant, run_id).await),
    }
}

/// Returns the status of a message that was not stored, for a run that has ended. The message
/// was applied if the run's session contains it. If the run has no session, no message was
/// applied.
async fn late_status(
    ctx: &RunContext,
    tenant: &TenantId,
    run: &RunSummary,
    message_id: MessageId,
) -> Result<SteeringStatus, Refusal> {
    if !run.has_session() {
        return Ok(SteeringStatus::TooLate);
    }
    let messages = ctx.store.new_message_list(tenant, run.session_id).await?;
    let is_held = messages.is_some_and(|messages| messages.iter().any(|message| message.id == message_id));
    Ok(if is_held {
        SteeringStatus::Applied
    } else {
        SteeringStatus::TooLate
    })
}
