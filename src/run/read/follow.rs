//! Follows the events of a run, active or ended, in this process or another.
//!
//! A follower has a cursor, the number of the last event that it passed on, and little other state.
//! So a slow reader costs nothing: events that it has not requested stay in their source
//! (`events/sources.rs`). A follower reads after its cursor and acts on the result:
//!
//! | found | next |
//! |---|---|
//! | events | pass them on and move the cursor; the terminal event is the last |
//! | nothing | wait for a change, or for the next poll |
//! | resumed | later events were lost: move the cursor back before `run.resumed` |
//! | ended | wait a second for stragglers, then pass on the last events |
//! | ahead | wait ten seconds, then go on from the last event |
//! | unknown | wait ten seconds, then drop the reader |
//! | gone, unreadable | drop the reader |
//!
//! Followers at the same cursor share each read (`context/shared_reads.rs`). A read of this
//! process's memory is not shared, since it costs nothing.
//!
//! A reader that reconnects only sends a number. After a takeover, this may be the number of a lost
//! event. If the number is beyond all events, the cursor moves back to `run.resumed`. If the new
//! attempt has used the number again, the reader continues with the events of the new attempt. It
//! gets `session.committed` and the terminal event in any case.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::find_run;
use super::followed::{Followed, SHUTTING_DOWN, TOO_FAR_BEHIND, UNKNOWN, UNREADABLE};
use super::wait::{has_let_go, let_go, run_wait};
use crate::run::context::{ReadSlot, RunContext};
use crate::run::events::{
    BATCH, BoardEvents, EndEvents, EventSource, Events, Found, StoredEvents, last_event, newest_resumption,
};
use agent::record::{RunEvent, RunEventPayload, event_weight};
use board::ControlMessage;
use store::StoreError;
use tasks::keyed::Held;
use values::ids::RunId;
use values::tenant::TenantId;

/// About the most bytes of events that a follower holds before it passes them on. A single event
/// may be larger.
const BATCH_BYTES: usize = 256 << 10;
/// About how many bytes of events a follower passes on before it yields.
const YIELD_BYTES: usize = 64 << 10;
/// How long a follower waits for a notification before it reads anyway: the first wait, and the
/// longest after repeated reads without an event.
const POLLS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// A run that is followed.
#[derive(Debug)]
pub struct Following {
    /// Whether the reader has all events up to the end of the run. Always `false` for a run with
    /// several attempts, since the reader's number may belong to a lost event.
    pub is_over: bool,
    /// The next events. A reader that already has the last event gets the end again.
    pub events: Follower,
}

/// A reader of the events of a run.
pub struct Follower {
    ctx: Arc<RunContext>,
    tenant: TenantId,
    run_id: RunId,
    /// The cursor: the number of the last event that was passed on.
    after: u64,
    /// Events after the cursor that were read and not passed on yet, with their weights.
    read: VecDeque<(Arc<RunEvent>, usize)>,
    /// Whether the event at the cursor is the publication of the run's session.
    knows_session: bool,
    /// The event or run that may never come, and the instant at which the wait began.
    stall: Option<(Stall, Instant)>,
    pace: Pace,
    /// The slot of shared reads, held while this follower waits. So others at the same cursor find
    /// its last read.
    slot: Option<Arc<Slot>>,
    /// The bytes passed on since the last yield.
    unyielded_bytes: usize,
    is_over: bool,
}

type Slot = Held<(TenantId, RunId, u64), ReadSlot<Found>>;

/// The time at which a follower reads again.
#[derive(Debug)]
struct Pace {
    /// How long the follower waits for a notification.
    poll: Duration,
    /// When the last read began, its own or a shared one.
    read_at: Instant,
    /// Whether a notification has arrived since then.
    is_notified: bool,
}

/// A wait for an event or a run that may never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stall {
    /// The events right before the end of a run, from another process.
    Stragglers,
    /// The event that the reader names: a board that was emptied may be filled again.
    Ahead,
    /// The run itself, for the same reason.
    Unknown,
}

impl Stall {
    fn patience(self) -> Duration {
        match self {
            Self::Stragglers => Duration::from_secs(1),
            Self::Ahead | Self::Unknown => Duration::from_secs(10),
        }
    }
}

/// The next action of a follower.
enum Step {
    /// Read on: the follower holds events, or moved its cursor.
    Continue,
    /// Wait, at most until this time.
    Wait(Option<Instant>),
    /// Drop the reader.
    Drop(&'static str),
}

/// Follows a run after the event with the number `after`. Returns `None` if the run does not exist.
pub async fn follow(
    ctx: &Arc<RunContext>,
    tenant: &TenantId,
    run_id: RunId,
    after: u64,
) -> Result<Option<Following>, StoreError> {
    let known = run_wait(ctx, tenant, run_id, Duration::ZERO).await?;
    Ok(known.map(|run| Following {
        is_over: run.summary.status.is_terminal()
            && run.summary.attempts <= 1
            && after >= run.summary.event_count.max(1),
        events: Follower::new(ctx, tenant, run_id, after),
    }))
}

/// Reads the events after a number, from any source.
async fn find_events(ctx: &RunContext, tenant: &TenantId, run_id: RunId, after: u64) -> Result<Found, StoreError> {
    let (shared, stored) = (BoardEvents(&ctx.board), StoredEvents(&*ctx.store));
    let events = shared.read(tenant, run_id, after).await?;
    if !events.is_empty() {
        return Ok(Found::Events(events));
    }
    // Reads the run before its events: once a queued run has ended, the store has all events.
    let Some(run) = find_run(ctx, tenant, run_id).await? else {
        return Ok(Found::Unknown);
    };
    let events = stored.read(tenant, run_id, after).await?;
    if !events.is_empty() {
        return Ok(Found::Events(events));
    }
    let sources: [&dyn EventSource; 2] = [&shared, &stored];
    let has_ended = run.summary.status.is_terminal();
    let last = if has_ended {
        Some(run.summary.event_count.max(1))
    } else {
        last_event(&sources, tenant, run_id).await?
    };
    if last.is_some_and(|last| last < after)
        && (!has_ended || run.summary.attempts > 1)
        && let Some(number) = newest_resumption(&sources, tenant, run_id).await?
    {
        return Ok(Found::Resumed(number));
    }
    if has_ended {
        return Ok(Found::Ended(EndEvents::read(&*ctx.store, tenant, run).await?));
    }
    let is_light_and_here = || {
        let active = ctx.process.active.find(tenant, run_id);
        active.is_some_and(|active| active.held_lease.is_none())
    };
    Ok(match last {
        Some(last) if last < after => Found::Ahead(last),
        // The event may have been emitted after the read above.
        Some(last) if last > after && is_light_and_here() => {
            let emitted = ctx.board.event_read_here(tenant, run_id, after, BATCH as usize);
            emitted.map_or(Found::Gone, Found::Events)
        }
        _ => Found::Nothing,
    })
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Follower");
        let shown = shown.field("run_id", &self.run_id).field("after", &self.after);
        shown.finish_non_exhaustive()
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ctx.process.event_readers.leave(self.run_id);
        if self.is_over {
            return;
        }
        if let Some(active) = self.ctx.process.active.find(&self.tenant, self.run_id) {
            active.note_reader();
        } else if self.ctx.board.is_shared() {
            // The grace of the run begins now.
            let (ctx, tenant, run_id) = (Arc::clone(&self.ctx), self.tenant.clone(), self.run_id);
            self.ctx.process.tasks.runs.spawn(async move {
                ctx.board.control_send(&tenant, run_id, ControlMessage::IsRead).await;
            });
        }
    }
}

impl Follower {
    /// Follows the events of a run that exists.
    pub(in crate::run) fn new(ctx: &Arc<RunContext>, tenant: &TenantId, run_id: RunId, after: u64) -> Self {
        ctx.process.event_readers.enter(run_id);
        Self {
            ctx: Arc::clone(ctx),
            tenant: tenant.clone(),
            run_id,
            after,
            read: VecDeque::new(),
            knows_session: false,
            stall: None,
            pace: Pace {
                poll: POLLS.0,
                read_at: Instant::now(),
                is_notified: true,
            },
            slot: None,
            unyielded_bytes: 0,
            is_over: false,
        }
    }

    /// Returns the id of the run.
    pub fn run_id(&self) -> RunId {
        self.run_id
    }

    /// Returns the number of the last event that was passed on.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Takes back the event that was passed on last. It is read again from its source, so a reader
    /// that can't use it now need not hold it.
    pub fn take_back(&mut self, event: &RunEvent) {
        self.after = event.sequence - 1;
        self.is_over = false;
        self.read.clear();
    }

    /// Returns the next event or the end. Not cancel-safe: a cancelled call may lose an event.
    pub async fn next(&mut self) -> Option<Followed> {
        while !self.is_over {
            if let Some((event, weight)) = self.read.pop_front() {
                if self.lacks_session(&event) {
                    // Reads both last events again from their source.
                    self.knows_session = true;
                    self.go_back_to(event.sequence - 1);
                    continue;
                }
                self.pass(&event, weight).await;
                return Some(Followed::Event(event));
            }
            // Both come before the read, so the read finds all earlier events. A later change wakes
            // this follower.
            let change = self.ctx.board.run_change(self.run_id);
            let is_let_go = has_let_go(&self.ctx, &self.tenant, self.run_id);
            let found = self.find().await;
            match self.take(found) {
                Step::Continue => (),
                Step::Wait(_) if is_let_go => return Some(self.dropped(SHUTTING_DOWN)),
                Step::Wait(until) => self.wait(change, until).await,
                Step::Drop(reason) => return Some(self.dropped(reason)),
            }
        }
        None
    }

    /// Moves the cursor to an event that is passed on.
    async fn pass(&mut self, event: &RunEvent, weight: usize) {
        self.after = event.sequence;
        if event.payload.is_terminal() {
            self.is_over = true;
        } else {
            self.knows_session = matches!(event.payload, RunEventPayload::SessionCommitted { .. });
        }
        // Yields, since streams with many events would otherwise block the threads.
        self.unyielded_bytes += weight;
        if self.unyielded_bytes > YIELD_BYTES {
            self.unyielded_bytes = 0;
            yield_now().await;
        }
    }

    /// Returns whether an event ends the run and the reader may not know the session. It may have
    /// read a lost event with the number of `session.committed`.
    fn lacks_session(&self, event: &RunEvent) -> bool {
        let ended = event.payload.record().map(|record| &record.summary);
        ended.is_some_and(|run| run.attempts > 1 && run.has_session()) && !self.knows_session
    }

    fn go_back_to(&mut self, sequence: u64) {
        self.after = sequence.saturating_sub(1);
        self.read.clear();
    }

    fn dropped(&mut self, reason: &'static str) -> Followed {
        self.is_over = true;
        Followed::Dropped { reason }
    }

    /// Reads after the cursor. May use a read that another follower began since this one's last
    /// read, but not after a notification.
    async fn find(&mut self) -> Found {
        let now = Instant::now();
        let since = if self.pace.is_notified { now } else { self.pace.read_at };
        let (ctx, tenant, run_id, after) = (&self.ctx, &self.tenant, self.run_id, self.after);
        if let Some(events) = ctx.board.event_read_here(tenant, run_id, after, BATCH as usize) {
            self.pace.read_at = now;
            return if events.is_empty() {
                Found::Nothing
            } else {
                Found::Events(events)
            };
        }
        let slot = ctx.process.event_reads.slot((tenant.clone(), run_id, after));
        // Boxed, since most followers read from memory only.
        let finding = Box::pin(async {
            let found = find_events(ctx, tenant, run_id, after).await;
            found.unwrap_or_else(|error| Found::Unreadable(Arc::new(error)))
        });
        let read = slot.read(tenant, since, finding).await;
        // Releases a slot with events, so that their memory is not held twice.
        self.slot = matches!(read.value, Found::Nothing | Found::Unknown).then_some(slot);
        self.pace.read_at = read.at;
        read.value
    }

    /// Acts on the result of a read.
    fn take(&mut self, found: Found) -> Step {
        match found {
            Found::Events(events) => self.hold(events),
            Found::Nothing => {
                self.stall = None;
                Step::Wait(None)
            }
            Found::Ended(end) => self.take_end(end),
            Found::Resumed(number) => {
                self.go_back_to(number);
                Step::Continue
            }
            Found::Ahead(last) => self.wait_for(Stall::Ahead).unwrap_or_else(|| {
                self.after = last;
                Step::Continue
            }),
            Found::Gone => Step::Drop(TOO_FAR_BEHIND),
            Found::Unknown => self.wait_for(Stall::Unknown).unwrap_or(Step::Drop(UNKNOWN)),
            Found::Unreadable(error) => {
                tracing::warn!(run_id = %self.run_id, error = &*error as &dyn std::error::Error, "a run's events can't be read");
                Step::Drop(UNREADABLE)
            }
        }
    }

    fn take_end(&mut self, end: EndEvents) -> Step {
        // A reader whose cursor is at the end or beyond still gets the end: again, or in place of
        // lost events.
        if !self.knows_session {
            self.after = self.after.min(end.first() - 1);
        }
        let has_gap = self.after + 1 < end.first();
        if has_gap && let Some(wait) = self.wait_for(Stall::Stragglers) {
            return wait;
        }
        let events = end.after(self.after).collect();
        self.hold(events)
    }

    /// Holds up to [`BATCH_BYTES`] of the events, and at least one event.
    fn hold(&mut self, events: Events) -> Step {
        let mut bytes = 0;
        for event in events {
            let weight = event_weight(&event.payload);
            bytes += weight;
            if bytes > BATCH_BYTES && !self.read.is_empty() {
                break;
            }
            self.read.push_back((event, weight));
        }
        self.stall = None;
        self.pace.poll = POLLS.0;
        self.pace.is_notified = true;
        Step::Continue
    }

    /// Waits for a change that may never come. Returns `None` once the wait has timed out.
    fn wait_for(&mut self, stall: Stall) -> Option<Step> {
        let since = self.stall.filter(|(known, _)| *known == stall);
        let (_, since) = *self.stall.insert(since.unwrap_or((stall, Instant::now())));
        let until = since + stall.patience();
        (Instant::now() < until).then_some(Step::Wait(Some(until)))
    }

    /// Waits for a change of the run, for the next poll, or until readers must leave this process.
    async fn wait(&mut self, change: BoxFuture<'static, ()>, until: Option<Instant>) {
        let poll = self.pace.read_at + self.pace.poll;
        let until = until.map_or(poll, |until| until.min(poll));
        self.pace.is_notified = tokio::select! {
            () = change => true,
            () = sleep_until(until) => false,
            () = let_go(&self.ctx, &self.tenant, self.run_id) => true,
        };
        self.pace.poll = POLLS.1.min(self.pace.poll * 2);
    }
}
