//! Shares data between replicas over Redis: live runs, their events, changes of tenants, control
//! messages and counts of requests.
//!
//! The memory of this process is authoritative for its own runs and is read first. Redis adds the
//! runs of other replicas. While Redis is down, runs of other replicas are invisible, but nothing
//! fails and nothing waits long. The commit then decides between two runs of different replicas
//! from the same base. The runs of a killed replica expire.
//!
//! Data that Redis lost is not repaired. After an outage, or if a stream lacks events, the writer
//! sends the data in this process's memory again. Readers find everything else in the store. No
//! other module uses Redis, and Redis is never the only copy of anything.
//!
//! | looking for | go to |
//! |---|---|
//! | what this process writes | `queue.rs`, `writer.rs`, `events.rs`, `keys.rs`, `stored.rs` |
//! | what it reads of other processes | `events.rs`, `subscription.rs`, `messages.rs` |
//! | the server and its outages | `server.rs`, `link.rs` |
//! | rates of requests | `rates.rs`, `rate.lua` |
//!
//! The code is long for two reasons: an outage costs a caller at most one timeout, and neither a
//! run nor its events wait for a write. The commit decides between exclusive runs in any case.
//! `show.lua` only rejects most of the losing runs before they call their models, in a few lines.

mod events;
mod keys;
mod link;
mod link_error;
mod messages;
mod queue;
mod rates;
mod server;
mod stored;
mod subscription;
mod writer;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use redis::{Cmd, Pipeline};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use self::keys::{index_key, remove_some, run_key, session_key};
use self::link::Link;
use self::link_error::LinkError;
use self::messages::Origin;
use self::queue::Queue;
use self::server::Server;
use self::subscription::Subscription;
use self::writer::Writer;
use super::control::AddressedMessage;
use super::error::BoardError;
use super::feed::TenantChange;
use super::live_run::LiveRun;
use super::local::LocalBoard;
use super::settings::RedisSettings;
use super::shared::SharedBoard;
use agent::record::RunEvent;
use tasks::supervision::Supervisor;
use values::ids::{RunId, SessionId};
use values::limits::{RateStanding, RequestRate};
use values::tenant::TenantId;

/// The part of a board on a server.
#[derive(Debug)]
struct RedisBoard {
    local: Arc<LocalBoard>,
    queue: Arc<Queue>,
    writer: Arc<Writer>,
    link: Arc<Link>,
    origin: Origin,
    /// Whether this process is among the subscribers.
    is_subscribed: Arc<AtomicBool>,
    tasks: TaskTracker,
    end: CancellationToken,
    _end_on_drop: DropGuard,
}

/// A run that the server may already show. If the run does not begin, dropping this removes it from
/// the server.
#[derive(Debug)]
struct Opening<'a> {
    queue: &'a Queue,
    tenant: &'a TenantId,
    run: Option<Arc<LiveRun>>,
}

type Parts = (Option<Vec<u8>>, Option<Vec<u8>>);

/// Opens the shared part at a URL. An unreachable server is retried.
pub(super) async fn open(
    url: &str,
    settings: RedisSettings,
    supervisor: &Supervisor,
    local: &Arc<LocalBoard>,
) -> Result<Box<dyn SharedBoard>, BoardError> {
    let queue = Arc::<Queue>::default();
    let server = Server::new(url, settings.ca.as_deref(), settings.timeout)?;
    let link = Arc::new(Link::new(server, settings.timeout, Arc::clone(&queue.wake)));
    if let Err(error) = link.reconnect().await {
        link.lose(link.epoch(), &error);
    }
    let (origin, is_subscribed) = (Origin::new(), Arc::<AtomicBool>::default());
    let end = CancellationToken::new();
    let tasks = TaskTracker::new();
    let writer = Arc::new(Writer {
        local: Arc::clone(local),
        queue: Arc::clone(&queue),
        link: Arc::clone(&link),
        origin,
        expiry: settings.expiry,
        event_retention: settings.board.event_retention,
        end: end.clone(),
    });
    let writing = Arc::clone(&writer);
    let writing = move || Arc::clone(&writing).run();
    tasks.spawn(supervisor.clone().keep("write to the board", writing));
    let subscription = Arc::new(Subscription {
        local: Arc::clone(local),
        link: Arc::clone(&link),
        origin,
        is_subscribed: Arc::clone(&is_subscribed),
        pulse: settings.expiry / 3,
        end: end.clone(),
    });
    let receiving = move || Arc::clone(&subscription).run();
    tasks.spawn(supervisor.clone().keep("receive from the board", receiving));
    Ok(Box::new(RedisBoard {
        local: Arc::clone(local),
        queue,
        writer,
        link,
        origin,
        is_subscribed,
        tasks,
        _end_on_drop: end.clone().drop_guard(),
        end,
    }))
}

/// Checks that the server accepts writes now.
pub(super) async fn check(url: &str, settings: RedisSettings) -> Result<(), BoardError> {
    let server = Server::new(url, settings.ca.as_deref(), settings.timeout)?;
    let connected = server.connect().await;
    connected.map(drop).map_err(failed("connect to its server"))
}

#[async_trait]
impl SharedBoard for RedisBoard {
    async fn run_open(&self, tenant: &TenantId, run: Arc<LiveRun>, exclusive: bool) -> Result<(), RunId> {
        if exclusive && let Some(rival) = self.local.rival(tenant, &run) {
            return Err(rival);
        }
        let run_id = run.summary.run_id;
        let mut opening = Opening {
            queue: &self.queue,
            tenant,
            run: Some(Arc::clone(&run)),
        };
        // Read before the request, since a run of this process may end during the request.
        let own = if exclusive {
            self.own_runs(tenant)
        } else {
            BTreeSet::new()
        };
        let shown = self.writer.show(tenant, &run, exclusive).await;
        let is_shown = shown.as_ref().is_ok_and(Vec::is_empty);
        let mut rivals = shown.unwrap_or_default();
        rivals.retain(|rival| !own.contains(rival));
        if !rivals.is_empty() {
            // Others of this process may have begun meanwhile.
            let own = self.own_runs(tenant);
            if let Some(rival) = rivals.into_iter().find(|rival| !own.contains(rival)) {
                opening.run = None;
                return Err(rival);
            }
        }
        // Another attempt at a queued run must find all events that readers saw.
        let is_durable_at_once = run.fence == 0;
        self.local.open(tenant, run, exclusive, is_durable_at_once)?;
        opening.run = None;
        if !is_shown {
            self.queue.show(tenant, run_id);
        }
        Ok(())
    }

    fn run_update(&self, tenant: &TenantId, run_id: RunId) {
        self.queue.show(tenant, run_id);
    }

    fn run_close(&self, tenant: &TenantId, run: &LiveRun) {
        self.queue.remove(tenant, run);
    }

    fn event_append(&self, tenant: &TenantId, run_id: RunId) {
        self.queue.share((tenant.clone(), run_id));
    }

    async fn run_lookup(&self, tenant: &TenantId, run_id: RunId) -> Option<Arc<LiveRun>> {
        if self.queue.ended(tenant).contains(&run_id) {
            return None;
        }
        let command = Cmd::hmget(run_key(tenant, run_id), &["summary", "work"]);
        let (summary, work): Parts = self.link.send_one(command).await.ok()?;
        stored::decode(summary.as_deref(), work.as_deref()).map(Arc::new)
    }

    async fn run_lookup_by_session(&self, tenant: &TenantId, session_id: SessionId) -> Option<RunId> {
        let ended = self.queue.ended(tenant);
        let command = Cmd::get(session_key(tenant, session_id));
        let run_id: Option<String> = self.link.send_one(command).await.ok()?;
        run_id?.parse().ok().filter(|run_id| !ended.contains(run_id))
    }

    async fn run_list(&self, tenant: &TenantId) -> Vec<Arc<LiveRun>> {
        let ended = self.queue.ended(tenant);
        let command = Cmd::zrange(index_key(tenant), 0, -1);
        let ids: Vec<String> = self.link.send_one(command).await.unwrap_or_default();
        let ids = ids.iter().filter_map(|id| id.parse().ok());
        let mut request = Pipeline::new();
        for run_id in ids.filter(|run_id| !ended.contains(run_id)) {
            request.add_command(Cmd::hget(run_key(tenant, run_id), "summary"));
        }
        if request.is_empty() {
            return Vec::new();
        }
        let summaries: Vec<Option<Vec<u8>>> = self.link.send(&request).await.unwrap_or_default();
        let readable = summaries
            .iter()
            .filter_map(|summary| stored::decode_summary(summary.as_deref()));
        readable.map(Arc::new).collect()
    }

    async fn event_read(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Arc<RunEvent>>, BoardError> {
        let events = events::read(&self.link, tenant, run_id, after, limit).await;
        events.map_err(failed("read events"))
    }

    async fn event_last(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, BoardError> {
        let last = events::last(&self.link, tenant, run_id).await;
        last.map_err(failed("read events"))
    }

    fn change_publish(&self, tenant: &TenantId, change: TenantChange) {
        self.queue.publish(tenant, change);
    }

    async fn control_publish(&self, message: AddressedMessage) -> Option<u64> {
        let published = self.origin.publish_control(message).ok()?;
        let own = u64::from(self.is_subscribed.load(Ordering::SeqCst));
        let subscribers: Result<u64, _> = self.link.send_one(published).await;
        subscribers.ok().map(|subscribers| subscribers.saturating_sub(own))
    }

    fn is_subscribed(&self) -> bool {
        self.is_subscribed.load(Ordering::SeqCst)
    }

    async fn rate_take(&self, tenant: &TenantId, rate: RequestRate) -> Option<RateStanding> {
        rates::take(&self.link, tenant, rate).await
    }

    async fn tenant_remove(&self, tenant: &TenantId) -> Result<u64, BoardError> {
        let (mut from, mut removed) = ("0".to_owned(), 0);
        loop {
            let answer: Result<(String, u64), _> = self.link.send_one(remove_some(tenant, &from)).await;
            let (next, gone) = answer.map_err(failed("remove a tenant"))?;
            removed += gone;
            if next == "0" {
                return Ok(removed);
            }
            from = next;
        }
    }

    async fn close(&self) {
        self.end.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl RedisBoard {
    /// Lists the runs of this process that the server may show. For these, this process knows
    /// better than the server whether they are active.
    fn own_runs(&self, tenant: &TenantId) -> BTreeSet<RunId> {
        // Reads the live runs first, since a run that ends moves from these to the ended ones.
        let live = self.local.list(tenant);
        let mut own = self.queue.ended(tenant);
        own.extend(live.iter().map(|run| run.summary.run_id));
        own
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        // Runs after the earlier request, since both use the same connection.
        if let Some(run) = self.run.take() {
            self.queue.remove(self.tenant, &run);
        }
    }
}

fn failed(operation: &'static str) -> impl Fn(LinkError) -> BoardError {
    move |error| BoardError {
        operation,
        source: error.into(),
    }
}
