//! Follows the events of a run, active or ended, in this process or another.
//!
//! Events come from the board, or from the store if the board lacks them. Once the run has ended,
//! the last events are made from its record and its session, at any later time. A reader that
//! returns after the end gets the terminal event again.
//!
//! A reader stores only its cursor, so a slow reader costs nothing. It reads small batches. Readers
//! at the same cursor share one poll (`shared_looks.rs`).

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until};

use super::active::ActiveRun;
use super::followed::{Followed, SHUTTING_DOWN, TOO_FAR_BEHIND, UNKNOWN, UNREADABLE};
use super::read::RunReader;
use super::run_end::RunEnd;
use super::shared_looks::{Place, SharedLooks};
use crate::ids::RunId;
use crate::record::{RunEvent, RunEventPayload, event_weight};
use crate::store::StoreError;
use crate::tenant::TenantId;

/// The most events of one read.
const BATCH: u32 = 256;
/// About how many bytes of events a reader holds that it has not passed on yet, but for one event that is larger. A reader that does
/// not read holds no more.
const BATCH_BYTES: usize = 256 << 10;
/// About how many bytes of events a reader passes on at a stretch: then others have their turn.
const TURN_BYTES: usize = 64 << 10;
/// How long a follower waits for a sign before it looks for itself: at first, and at most when there is nothing again and again.
const POLL: Duration = Duration::from_secs(1);
const LONGEST_POLL: Duration = Duration::from_secs(5);
/// How long the last events of an ended run may be on their way, before they are taken for lost.
const STRAGGLERS: Duration = Duration::from_secs(1);
/// How long events that a reader was shown may be nowhere, before they are taken for lost.
const LOST: Duration = Duration::from_secs(10);

/// A run that is followed.
#[derive(Debug)]
pub struct Following {
    /// Whether the reader has all events up to the end of the run. A number that a worker that died has told may be that of another event
    /// since, so nobody is taken for such a reader of a run that several workers took up.
    pub is_over: bool,
    /// The events that follow. One who has the last one is told the end once more.
    pub events: Follower,
}

/// Follows runs.
#[derive(Debug)]
pub struct Followers {
    reader: Arc<RunReader>,
    /// What those have seen who follow a run from the event of a number on.
    looks: SharedLooks<(TenantId, RunId, u64), Sight>,
}

impl Followers {
    /// Follows what the reader reads.
    pub fn new(reader: Arc<RunReader>) -> Self {
        Self {
            looks: SharedLooks::new(&reader.at_once),
            reader,
        }
    }

    /// Follows a run from the event with the number `after` on; none when there is no such run.
    pub async fn follow(
        self: &Arc<Self>,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
    ) -> Result<Option<Following>, StoreError> {
        let known = self.reader.run_wait(tenant, run_id, Duration::ZERO).await?;
        Ok(known.map(|run| Following {
            is_over: run.summary.status.is_terminal()
                && run.summary.attempts <= 1
                && after >= run.summary.event_count.max(1),
            events: self.events_of(tenant, run_id, after),
        }))
    }

    /// Follows the events of a run that is known.
    pub fn events_of(self: &Arc<Self>, tenant: &TenantId, run_id: RunId, after: u64) -> Follower {
        Follower {
            followers: Arc::clone(self),
            tenant: tenant.clone(),
            run_id,
            after,
            read: VecDeque::new(),
            turn_bytes: 0,
            patience: POLL,
            is_signed: true,
            seen_at: Instant::now(),
            place: None,
            missing_since: None,
            ahead_since: None,
            end_begun_at: None,
            looked_back_to: 0,
            ended_since: None,
            is_over: false,
        }
    }
}

/// A reader with its place.
pub struct Follower {
    followers: Arc<Followers>,
    tenant: TenantId,
    run_id: RunId,
    /// The number of the last event that was passed on.
    after: u64,
    read: VecDeque<Arc<RunEvent>>,
    /// The bytes that were passed on since others had their turn.
    turn_bytes: usize,
    /// How long the next look is waited for.
    patience: Duration,
    /// Whether the next look follows on a sign, so that none will do that was taken before it.
    is_signed: bool,
    /// When the last look was taken, by this reader or another.
    seen_at: Instant,
    /// Where those meet who have read as far.
    place: Option<Arc<MeetingPlace>>,
    /// Since when the run is nowhere.
    missing_since: Option<Instant>,
    /// Since when the reader has been shown more than there is.
    ahead_since: Option<Instant>,
    /// The number of the first of the run's last events, if the last one that was passed on is one of them.
    end_begun_at: Option<u64>,
    /// The number of the event that the reader was sent back to: a resumption of the run, or the publication of its session.
    looked_back_to: u64,
    /// Since when the run is known to have ended.
    ended_since: Option<Instant>,
    is_over: bool,
}

/// What a look for more events has found.
enum Found {
    Events(Vec<Arc<RunEvent>>),
    /// Nothing yet.
    Nothing,
    /// Nothing that follows on the last one.
    Gap(&'static str),
}

/// Where readers meet who have read as far.
type MeetingPlace = Place<(TenantId, RunId, u64), Sight>;

/// What there is for all readers who have read as far.
#[derive(Debug, Clone)]
pub(super) enum Sight {
    Events(Vec<Arc<RunEvent>>),
    /// Nothing yet.
    Nothing,
    /// The readers have been shown more than there is. The newest resumption of the run is this one.
    Ahead {
        last: u64,
        resumption: Option<u64>,
    },
    /// All is read but the end of the run.
    Ended(RunEnd),
    /// The run is nowhere.
    Missing,
    Unreadable(Arc<StoreError>),
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Follower");
        let shown = shown.field("run_id", &self.run_id).field("after", &self.after);
        shown.finish_non_exhaustive()
    }
}

impl Follower {
    /// Names the run.
    pub fn run_id(&self) -> RunId {
        self.run_id
    }

    /// Returns the number of the last event that was passed on.
    pub fn after(&self) -> u64 {
        self.after
    }

    /// Takes the event back that was passed on last: the next one is read again, from where it is kept. So a reader that can't use it
    /// now holds nothing of it.
    pub fn take_back(&mut self, event: &RunEvent) {
        self.after = event.sequence - 1;
        self.is_over = false;
        self.read.clear();
    }

    /// Returns what the reader is told next. A call that is not awaited to its end may lose an event.
    pub async fn next(&mut self) -> Option<Followed> {
        while !self.is_over {
            if let Some(event) = self.read.pop_front() {
                if self.lacks_session(&event) {
                    self.send_back_to(event.sequence - 1);
                    continue;
                }
                self.after = event.sequence;
                let begun_at = self.end_begun_at.unwrap_or(u64::MAX).min(event.sequence);
                self.end_begun_at = event.payload.is_of_end().then_some(begun_at);
                self.is_over = event.payload.is_terminal();
                self.take_turns(&event).await;
                return Some(Followed::Event(event));
            }
            let change = self.reader().board.run_change(&self.tenant, self.run_id);
            let asked = Instant::now();
            // Before the look, which so finds all that was told before.
            let is_let_go = self.reader().has_let_go(&self.tenant, self.run_id);
            let after = if self.is_signed { asked } else { self.seen_at };
            match self.look(after).await {
                Ok(Found::Events(mut events)) => {
                    truncate(&mut events);
                    self.read.extend(events);
                    (self.patience, self.is_signed) = (POLL, true);
                }
                Ok(Found::Nothing) if is_let_go => return Some(self.dropped(SHUTTING_DOWN)),
                Ok(Found::Nothing) => {
                    self.is_signed = tokio::select! {
                        () = change => true,
                        () = sleep_until(self.seen_at + self.patience) => false,
                        () = self.reader().let_go(&self.tenant, self.run_id) => true,
                    };
                    self.patience = (self.patience * 2).min(LONGEST_POLL);
                }
                Ok(Found::Gap(reason)) => return Some(self.dropped(reason)),
                Err(error) => {
                    tracing::warn!(run_id = %self.run_id, error = &error as &dyn std::error::Error, "a run's events can't be read");
                    return Some(self.dropped(UNREADABLE));
                }
            }
        }
        None
    }

    /// Lets others go on when many bytes were passed on. Streams that all have much to say would otherwise hold the threads.
    async fn take_turns(&mut self, event: &RunEvent) {
        self.turn_bytes += event_weight(&event.payload);
        if self.turn_bytes > TURN_BYTES {
            self.turn_bytes = 0;
            yield_now().await;
        }
    }

    /// Tells whether an event is the end of a run whose session the reader may not know of: under the number before it may have read what a
    /// worker that died has told. Nobody is sent back for that twice.
    fn lacks_session(&self, event: &RunEvent) -> bool {
        let end = event.payload.record().map(|record| &record.summary);
        let is_resumed = end.is_some_and(|run| run.attempts > 1 && run.status.has_session());
        is_resumed && !self.is_at_end() && self.looked_back_to + 1 < event.sequence
    }

    /// Tells whether the last event that was passed on is one of the last of the run.
    fn is_at_end(&self) -> bool {
        self.end_begun_at.is_some_and(|begun| begun <= self.after)
    }

    fn send_back_to(&mut self, sequence: u64) {
        self.looked_back_to = sequence;
        self.after = sequence - 1;
        self.read.clear();
    }

    fn dropped(&mut self, reason: &'static str) -> Followed {
        self.is_over = true;
        Followed::Dropped { reason }
    }

    /// Looks for more. Another reader's look will do if it was taken after the instant.
    async fn look(&mut self, after: Instant) -> Result<Found, StoreError> {
        if let Some(active) = self.reader().active.find(&self.tenant, self.run_id) {
            self.seen_at = Instant::now();
            return self.look_here(&active).await;
        }
        let key = (self.tenant.clone(), self.run_id, self.after);
        let place = self.followers.looks.place(key);
        let seen = place.see(&self.tenant, after, self.see()).await;
        // Whoever waits for more keeps the place, where others find what was seen. What was found is not kept there as well.
        self.place = matches!(seen.value, Sight::Nothing | Sight::Missing).then_some(place);
        self.seen_at = seen.at;
        if !matches!(seen.value, Sight::Missing) {
            self.missing_since = None;
        }
        match seen.value {
            Sight::Events(events) => Ok(Found::Events(events)),
            Sight::Ended(end) => self.look_at_end(end).await,
            Sight::Ahead { last, resumption } => Ok(self.go_back(last, resumption)),
            Sight::Nothing => {
                self.ahead_since = None;
                Ok(Found::Nothing)
            }
            // A board that was emptied is filled again by the process that works on the run, if there is one.
            Sight::Missing if self.missing_since.get_or_insert_with(Instant::now).elapsed() < LOST => {
                Ok(Found::Nothing)
            }
            Sight::Missing => Ok(Found::Gap(UNKNOWN)),
            Sight::Unreadable(error) => Err(StoreError::shared(&error)),
        }
    }

    fn reader(&self) -> &RunReader {
        &self.followers.reader
    }

    /// Looks at a run that this process does not work on, for all who have read as far.
    async fn see(&self) -> Sight {
        self.try_see()
            .await
            .unwrap_or_else(|error| Sight::Unreadable(Arc::new(error)))
    }

    async fn try_see(&self) -> Result<Sight, StoreError> {
        let shown = self.look_at_board(None).await;
        if !shown.is_empty() {
            return Ok(Sight::Events(shown));
        }
        let Some(run) = self.reader().find_run(&self.tenant, self.run_id).await? else {
            return Ok(Sight::Missing);
        };
        if let Found::Events(events) = self.look_at_store().await? {
            return Ok(Sight::Events(events));
        }
        if run.summary.status.is_terminal() {
            return Ok(Sight::Ended(
                RunEnd::read(&*self.reader().store, &self.tenant, run).await?,
            ));
        }
        self.see_ahead().await
    }

    /// Looks at a run of this process.
    async fn look_here(&mut self, active: &ActiveRun) -> Result<Found, StoreError> {
        let shown = self.look_at_board(Some(active)).await;
        if !shown.is_empty() {
            return Ok(Found::Events(shown));
        }
        let board = &self.reader().board;
        let last = board.event_last(&self.tenant, self.run_id).await.unwrap_or_default();
        if last < self.after {
            return self.look_back().await;
        }
        if last == self.after {
            return Ok(Found::Nothing);
        }
        // It may have been told a moment ago.
        let shown = self.look_at_board(Some(active)).await;
        if !shown.is_empty() {
            Ok(Found::Events(shown))
        } else if active.held_lease.is_some() {
            // It may wait to be shared, and is shown then.
            self.patience = POLL;
            self.look_at_store().await
        } else {
            Ok(Found::Gap(TOO_FAR_BEHIND))
        }
    }

    /// Reads what the board has; a board that is away has nothing. Of a run of the queue that is at work here only that is shown which
    /// another worker would find: what was told is not told otherwise afterwards.
    async fn look_at_board(&self, here: Option<&ActiveRun>) -> Vec<Arc<RunEvent>> {
        let board = &self.reader().board;
        let shown = board
            .event_read(&self.tenant, self.run_id, self.after, BATCH as usize)
            .await;
        let mut shown = shown.unwrap_or_default();
        if let Some(held) = here.and_then(|active| active.held_lease.as_ref()) {
            let shared = board.event_shared(&self.tenant, self.run_id);
            let lasts = |event: &Arc<RunEvent>| event.sequence <= shared || held.is_persisted(event.sequence);
            let lasting = shown.iter().take_while(|event| lasts(event)).count();
            shown.truncate(lasting);
        }
        shown
    }

    /// A reader may have been shown more than a worker that died could share. Such a reader begins again where another worker has gone
    /// on, which is where it learns that what it has since then does not count.
    async fn look_back(&mut self) -> Result<Found, StoreError> {
        let Sight::Ahead { last, resumption } = self.see_ahead().await? else {
            self.ahead_since = None;
            return Ok(Found::Nothing);
        };
        Ok(self.go_back(last, resumption))
    }

    /// Looks whether readers have been shown more than there is.
    async fn see_ahead(&self) -> Result<Sight, StoreError> {
        let Some(last) = self.last_known().await?.filter(|last| *last < self.after) else {
            return Ok(Sight::Nothing);
        };
        let resumption = self.newest_resumption().await?;
        Ok(Sight::Ahead { last, resumption })
    }

    fn go_back(&mut self, last: u64, resumption: Option<u64>) -> Found {
        let since = *self.ahead_since.get_or_insert_with(Instant::now);
        if let Some(number) = resumption.filter(|number| *number <= self.after && self.looked_back_to < *number) {
            self.send_back_to(number);
            return Found::Events(Vec::new());
        }
        // What the reader names may be on its way to a board that was emptied. Otherwise it was never told, or is lost, and the reader
        // goes on from what there is.
        if since.elapsed() > LOST {
            self.after = last;
        }
        Found::Nothing
    }

    /// Returns the number of the last event that there is. While the board is away nobody knows.
    async fn last_known(&self) -> Result<Option<u64>, StoreError> {
        let reader = self.reader();
        let Ok(shown) = reader.board.event_last(&self.tenant, self.run_id).await else {
            return Ok(None);
        };
        let kept = reader.store.event_last(&self.tenant, self.run_id).await?;
        Ok(Some(kept.max(shown)))
    }

    /// Finds the number of the newest `run.resumed`.
    async fn newest_resumption(&self) -> Result<Option<u64>, StoreError> {
        let reader = self.reader();
        let (mut newest, mut after) = (None, 0);
        loop {
            let shown = reader
                .board
                .event_read(&self.tenant, self.run_id, after, BATCH as usize)
                .await;
            let mut events = shown.unwrap_or_default();
            if events.is_empty() {
                events = reader.store.event_read(&self.tenant, self.run_id, after, BATCH).await?;
            }
            let Some(last) = events.last().map(|event| event.sequence) else {
                return Ok(newest);
            };
            after = last;
            let resumed = events
                .iter()
                .rfind(|event| matches!(event.payload, RunEventPayload::Resumed { .. }));
            newest = resumed.map(|event| event.sequence).or(newest);
        }
    }

    async fn look_at_store(&self) -> Result<Found, StoreError> {
        let store = &self.reader().store;
        let events = store.event_read(&self.tenant, self.run_id, self.after, BATCH).await?;
        Ok(if events.is_empty() {
            Found::Nothing
        } else {
            Found::Events(events)
        })
    }

    /// Goes on with the last events of a run. Those before them may still be on their way to the board.
    async fn look_at_end(&mut self, end: RunEnd) -> Result<Found, StoreError> {
        let last = end.terminal.sequence;
        if self.after > last
            && let Found::Events(_) = self.look_back().await?
        {
            return Ok(Found::Events(Vec::new()));
        }
        let made = end.event_count();
        // Whoever has all that there is may have read something else in its place; it is told the end, once more or at last.
        if !self.is_at_end() && self.after.saturating_add(made) > last {
            self.after = last.saturating_sub(made);
        }
        let since = *self.ended_since.get_or_insert_with(Instant::now);
        if self.after + made < last && since.elapsed() < STRAGGLERS {
            // It may be large, and is read again.
            drop(end);
            let change = self.reader().board.run_change(&self.tenant, self.run_id);
            tokio::select! {
                () = change => (),
                () = sleep_until(since + STRAGGLERS) => (),
            }
            return Ok(Found::Events(Vec::new()));
        }
        Ok(Found::Events(end.events_after(self.after)))
    }
}

/// Leaves as many events as a reader holds. One that is larger is the only one, and passed on at once.
fn truncate(events: &mut Vec<Arc<RunEvent>>) {
    let mut bytes = 0;
    let fits = |event: &&Arc<RunEvent>| {
        bytes += event_weight(&event.payload);
        bytes <= BATCH_BYTES
    };
    let count = events.iter().take_while(fits).count();
    events.truncate(count.max(1));
}
