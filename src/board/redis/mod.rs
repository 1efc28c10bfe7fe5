//! The board of several replicas: shares live runs over Redis.
//!
//! What this process knows of its own runs is authoritative and is read first. Redis adds the runs
//! of other replicas. While Redis is down, runs of other replicas are invisible, but nothing fails
//! and nothing waits long. The commit then decides between two replicas that work on one base. The
//! runs of a killed replica expire with its heartbeats.
//!
//! No other module uses Redis, and Redis is never the only copy of anything.
//!
//! | looking for | go to |
//! |---|---|
//! | what this process writes | `queue.rs`, `writer.rs`, `streams.rs`, `keys.rs`, `stored.rs` |
//! | what it reads of other processes | `events.rs`, `subscription.rs`, `messages.rs` |
//! | the server and its outages | `address.rs`, `servers.rs`, `link.rs`, `request.rs` |
//! | rates of requests | `rates.rs`, `rate.lua` |

mod address;
mod events;
mod keys;
mod link;
mod messages;
mod queue;
mod rates;
mod request;
mod servers;
mod stored;
mod streams;
mod subscription;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use redis::Cmd;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::keys::{index_key, remove_some, run_key, session_key};
use self::link::{Link, LinkError};
use self::messages::Origin;
use self::queue::{Opening, Queue};
use self::request::Request;
use self::servers::Servers;
use self::stored::Encoder;
use self::streams::Streams;
use self::subscription::Subscription;
use self::writer::Writer;
use super::events::LogReading;
use super::settings::BoardSettings;
use super::{AddressedSignal, Board, BoardError, BoardFuture, InProcessBoard, LiveRun, RunSignal};
use crate::ids::{RunId, SessionId};
use crate::limits::{RateStanding, RequestRate};
use crate::record::RunEvent;
use crate::supervision::Supervisor;
use crate::tenant::TenantId;

/// How a board uses its server.
#[derive(Debug, Clone)]
pub struct RedisBoardSettings {
    /// How long a run is shown after the last sign of life of its process, which gives three in this time.
    pub expiry: Duration,
    /// How long a request may wait for the server.
    pub timeout: Duration,
    /// The certificate authorities (PEM) that are trusted instead of the public ones.
    pub ca: Option<Vec<u8>>,
    /// How much is kept of what runs tell.
    pub board: BoardSettings,
}

/// Shares live runs over Redis.
#[derive(Debug)]
pub struct RedisBoard {
    local: Arc<InProcessBoard>,
    queue: Arc<Queue>,
    link: Arc<Link>,
    streams: Arc<Streams>,
    origin: Origin,
    /// Whether this process is among those who hear signals.
    is_heard: Arc<AtomicBool>,
    timeout: Duration,
    tasks: TaskTracker,
    end: CancellationToken,
    _end_on_drop: DropGuard,
}

/// A run whose place on the server is taken off again unless it begins.
#[derive(Debug)]
struct Claim<'a> {
    queue: &'a Queue,
    tenant: &'a TenantId,
    run: Option<Arc<LiveRun>>,
    answer: oneshot::Receiver<Result<(), RunId>>,
}

type Parts = (Option<Vec<u8>>, Option<Vec<u8>>);

impl Default for RedisBoardSettings {
    fn default() -> Self {
        Self {
            expiry: Duration::from_secs(30),
            timeout: Duration::from_millis(500),
            ca: None,
            board: BoardSettings::default(),
        }
    }
}

impl RedisBoard {
    /// Opens a board on a `redis://` URL, `rediss://` for TLS; `redis+sentinel://HOST,HOST/MASTER` and `redis+cluster://HOST,HOST`
    /// name several hosts. Fails for a malformed URL or authority only: a server that is away is tried again.
    pub async fn open(url: &str, settings: RedisBoardSettings, supervisor: &Supervisor) -> Result<Self, BoardError> {
        let local = Arc::new(InProcessBoard::new(settings.board));
        let queue = Arc::<Queue>::default();
        let servers = Servers::new(url, settings.ca.as_deref(), settings.timeout)?;
        let link = Arc::new(Link::new(servers, settings.timeout, Arc::clone(&queue.wake)));
        if let Err(error) = link.reconnect().await {
            link.lose(link.epoch(), &error);
        }
        let (origin, is_heard) = (Origin::new(), Arc::<AtomicBool>::default());
        let end = CancellationToken::new();
        let tasks = TaskTracker::new();
        let streams = Arc::new(Streams::new(Arc::clone(&local), settings.board.event_retention));
        let writer = Arc::new(Writer {
            local: Arc::clone(&local),
            queue: Arc::clone(&queue),
            link: Arc::clone(&link),
            encoder: Encoder::default(),
            streams: Arc::clone(&streams),
            origin,
            expiry: settings.expiry,
            event_retention: settings.board.event_retention,
            end: end.clone(),
        });
        let writing = move || Arc::clone(&writer).run();
        tasks.spawn(supervisor.clone().keep("write to the board", writing));
        let subscription = Arc::new(Subscription {
            local: Arc::clone(&local),
            link: Arc::clone(&link),
            origin,
            is_heard: Arc::clone(&is_heard),
            pulse: settings.expiry / 3,
            end: end.clone(),
        });
        let hearing = move || Arc::clone(&subscription).run();
        tasks.spawn(supervisor.clone().keep("hear the board", hearing));
        Ok(Self {
            local,
            queue,
            link,
            streams,
            origin,
            is_heard,
            timeout: settings.timeout,
            tasks,
            _end_on_drop: end.clone().drop_guard(),
            end,
        })
    }

    /// Tells whether a board could be opened there and the server answers now, within a few times the time limit.
    pub async fn check(url: &str, settings: RedisBoardSettings) -> Result<(), BoardError> {
        let servers = Servers::new(url, settings.ca.as_deref(), settings.timeout)?;
        let connected = servers.connect().await;
        connected.map(drop).map_err(|error| BoardError {
            operation: "connect to its server",
            source: error.into(),
        })
    }

    async fn open_run(&self, tenant: &TenantId, run: Arc<LiveRun>, exclusive: bool) -> Result<(), RunId> {
        if exclusive && let Some(rival) = self.local.rival(tenant, &run) {
            return Err(rival);
        }
        let mut claim = self.claim(tenant, &run, exclusive);
        let answer = timeout(self.timeout, &mut claim.answer).await;
        let shown = match answer {
            Ok(Ok(Err(rival))) => {
                claim.run = None;
                return Err(rival);
            }
            Ok(Ok(Ok(()))) => true,
            Ok(Err(_)) | Err(_) => false,
        };
        let run_id = run.summary.run_id;
        self.local.open(tenant, run, exclusive)?;
        claim.run = None;
        if !shown {
            self.queue.show(tenant, run_id);
        }
        Ok(())
    }

    fn claim<'a>(&'a self, tenant: &'a TenantId, run: &Arc<LiveRun>, exclusive: bool) -> Claim<'a> {
        let (sender, answer) = oneshot::channel();
        // In an outage the sender is dropped here, and the answer is known to be missing.
        if !self.link.is_lost() {
            self.queue.open(Opening {
                tenant: tenant.clone(),
                run: Arc::clone(run),
                exclusive,
                answer: sender,
            });
        }
        Claim {
            queue: &self.queue,
            tenant,
            run: Some(Arc::clone(run)),
            answer,
        }
    }

    async fn lookup(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<LiveRun>> {
        if let Some(run) = self.local.lookup(tenant, run_id) {
            return Some(run);
        }
        if self.queue.ended(tenant).contains(&run_id) {
            return None;
        }
        let request = Request::of(tenant, Cmd::hmget(run_key(tenant, run_id), &["summary", "work"]));
        let ((summary, work),): (Parts,) = self.link.send(&request).await.ok()?;
        stored::decode(summary.as_deref(), work.as_deref()).map(Arc::new)
    }

    async fn lookup_by_session(&self, tenant: &TenantId, session_id: SessionId) -> Option<RunId> {
        if let Some(run_id) = self.local.lookup_by_session(tenant, session_id) {
            return Some(run_id);
        }
        let ended = self.queue.ended(tenant);
        let request = Request::of(tenant, Cmd::get(session_key(tenant, session_id)));
        let (run_id,): (Option<String>,) = self.link.send(&request).await.ok()?;
        run_id?.parse().ok().filter(|run_id| !ended.contains(run_id))
    }

    async fn list(&self, tenant: &TenantId) -> Vec<Arc<LiveRun>> {
        let ended = self.queue.ended(tenant);
        let mut runs = self.list_shared(tenant).await;
        runs.retain(|run| !ended.contains(&run.summary.run_id));
        // Own runs come first, and so win over what the server has of them.
        runs.splice(0..0, self.local.list(tenant));
        runs.sort_by_key(|run| std::cmp::Reverse(run.summary.run_id));
        runs.dedup_by_key(|run| run.summary.run_id);
        runs
    }

    /// Removes all that the server holds of a tenant; returns the number of keys. What processes at work hold they write again.
    pub async fn tenant_remove(&self, tenant: &TenantId) -> Result<u64, BoardError> {
        let (mut from, mut removed) = ("0".to_owned(), 0);
        loop {
            let request = Request::of(tenant, remove_some(tenant, &from));
            let answer: Result<((String, u64),), _> = self.link.send(&request).await;
            let ((next, gone),) = answer.map_err(|error| BoardError {
                operation: "remove a tenant",
                source: error.into(),
            })?;
            removed += gone;
            if next == "0" {
                return Ok(removed);
            }
            from = next;
        }
    }

    async fn list_shared(&self, tenant: &TenantId) -> Vec<Arc<LiveRun>> {
        let request = Request::of(tenant, Cmd::zrange(index_key(tenant), 0, -1));
        let ids: Result<(Vec<String>,), _> = self.link.send(&request).await;
        let (ids,) = ids.unwrap_or_default();
        let ids: Vec<RunId> = ids.iter().filter_map(|id| id.parse().ok()).collect();
        if ids.is_empty() {
            return Vec::new();
        }
        let mut request = Request::default();
        for run_id in ids {
            request.add(tenant, Cmd::hget(run_key(tenant, run_id), "summary"));
        }
        let summaries: Vec<Option<Vec<u8>>> = self.link.send(&request).await.unwrap_or_default();
        let readable = summaries
            .iter()
            .filter_map(|summary| stored::decode_summary(summary.as_deref()));
        readable.map(Arc::new).collect()
    }

    async fn read_events(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Arc<RunEvent>>, BoardError> {
        let known = match self.local.events.read(tenant, run_id, after, limit) {
            LogReading::Known(events) => return Ok(events),
            LogReading::Released(events) => events,
            LogReading::Missing => Vec::new(),
        };
        match events::read(&self.link, tenant, run_id, after, limit).await {
            Ok(events) if events.is_empty() => Ok(known),
            Ok(events) => Ok(events),
            Err(_) if !known.is_empty() => Ok(known),
            Err(error) => Err(unread(error)),
        }
    }

    async fn last_event(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, BoardError> {
        let known = match self.local.events.held(tenant, run_id) {
            Some(held) if !held.is_released => return Ok(held.last),
            Some(held) => held.last,
            None => 0,
        };
        match events::last(&self.link, tenant, run_id).await {
            // What was told here last may still be on its way.
            Ok(last) => Ok(last.max(known)),
            Err(_) if known > 0 => Ok(known),
            Err(error) => Err(unread(error)),
        }
    }

    async fn send_signal(&self, signal: AddressedSignal) -> bool {
        let (tenant, run_id, _) = &signal;
        let is_here = self.local.lookup(tenant, *run_id).is_some();
        let published = self.origin.tell_signal(signal.clone());
        if self.local.signals.send(signal) && is_here {
            return true;
        }
        let Ok(published) = published else { return false };
        let mut request = Request::default();
        request.publish(published);
        let own = u64::from(self.is_heard.load(Ordering::SeqCst));
        let hearers: Result<(u64,), _> = self.link.send(&request).await;
        hearers.is_ok_and(|(hearers,)| hearers > own || !self.link.counts_hearers())
    }
}

fn unread(error: LinkError) -> BoardError {
    BoardError {
        operation: "read events",
        source: error.into(),
    }
}

impl Board for RedisBoard {
    fn is_shared(&self) -> bool {
        true
    }

    fn run_open<'a>(
        &'a self,
        tenant: &'a TenantId,
        run: Arc<LiveRun>,
        exclusive: bool,
    ) -> BoardFuture<'a, Result<(), RunId>> {
        Box::pin(async move { Ok(self.open_run(tenant, run, exclusive).await) })
    }

    fn run_update(&self, tenant: &TenantId, run: Arc<LiveRun>) {
        let run_id = run.summary.run_id;
        self.local.update(tenant, run);
        self.queue.show(tenant, run_id);
    }

    fn run_close(&self, tenant: &TenantId, run_id: RunId) {
        if let Some(run) = self.local.close(tenant, run_id) {
            self.queue.remove(tenant, &run);
        }
    }

    fn run_release(&self, tenant: &TenantId, run_id: RunId) {
        self.local.release(tenant, run_id);
    }

    fn run_lookup<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoardFuture<'a, Option<Arc<LiveRun>>> {
        Box::pin(async move { Ok(self.lookup(tenant, run_id).await) })
    }

    fn run_lookup_by_session<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> BoardFuture<'a, Option<RunId>> {
        Box::pin(async move { Ok(self.lookup_by_session(tenant, session_id).await) })
    }

    fn run_list<'a>(&'a self, tenant: &'a TenantId) -> BoardFuture<'a, Vec<Arc<LiveRun>>> {
        Box::pin(async move { Ok(self.list(tenant).await) })
    }

    fn event_append(&self, tenant: &TenantId, event: Arc<RunEvent>) {
        let run_id = event.run_id;
        if self.local.events.append(tenant, event) {
            self.local.changes.tell(run_id);
            self.queue.tell((tenant.clone(), run_id));
        }
    }

    fn event_read<'a>(
        &'a self,
        tenant: &'a TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> BoardFuture<'a, Vec<Arc<RunEvent>>> {
        Box::pin(self.read_events(tenant, run_id, after, limit))
    }

    fn event_last<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> BoardFuture<'a, u64> {
        Box::pin(self.last_event(tenant, run_id))
    }

    fn event_shared(&self, _: &TenantId, run_id: RunId) -> u64 {
        self.streams.shared(run_id)
    }

    fn run_change(&self, _: &TenantId, run_id: RunId) -> BoxFuture<'static, ()> {
        self.local.changes.wait(run_id)
    }

    fn signal_send<'a>(&'a self, tenant: &'a TenantId, run_id: RunId, signal: RunSignal) -> BoardFuture<'a, bool> {
        let signal = (tenant.clone(), run_id, signal);
        Box::pin(async move { Ok(self.send_signal(signal).await) })
    }

    fn signals(&self) -> BoxStream<'static, AddressedSignal> {
        self.local.signals.hear()
    }

    fn rate_take<'a>(&'a self, tenant: &'a TenantId, rate: RequestRate) -> BoxFuture<'a, Option<RateStanding>> {
        Box::pin(rates::take(&self.link, tenant, rate))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.end.cancel();
            self.tasks.close();
            self.tasks.wait().await;
        })
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        // First, so that the writer either has asked already or never asks: what it has asked is taken back after.
        self.answer.close();
        if let Some(run) = self.run.take() {
            self.queue.remove(self.tenant, &run);
        }
    }
}
