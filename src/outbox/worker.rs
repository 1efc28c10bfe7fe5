//! The worker: leases due messages, sends several at the same time, and records the results.

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable as _};
use serde::Deserialize;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::attempt::{AttemptError, attempt, outcome};
use super::backoff::Backoff;
use super::receivers::{Busy, Receivers, Share};
use crate::metrics::Metrics;
use agent::record::{DeliveryRecord, DeliveryStatus};
use store::outbox::{DeliveryOutcome, DueDelivery, DueFilter, OutboxStore};
use store::queue::LeaseTerms;
use store::{Outage, StoreError};
use tools::webhooks::{WebhookSecret, WebhookSender};
use values::clock::{Clock, Timestamp};
use values::ids::{IdSource, WorkerId};
use values::settings::{duration, integer};
use values::tenant::TenantId;

/// How long a worker tries to record a result while the store is unavailable.
const RECORD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long messages in flight may take after the worker was told to shut down.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How much longer a lease lasts than the longest send and record, since the clocks of replicas
/// differ.
const LEASE_MARGIN: Duration = Duration::from_secs(10);

/// How messages are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct OutboxSettings {
    /// The most attempts to send a message.
    #[serde(deserialize_with = "integer::<_, 1, 1_000, _>")]
    pub max_attempts: u32,
    /// The longest delay after the first failure. It doubles after each further failure.
    #[serde(deserialize_with = "duration::<10, 86_400_000, _>")]
    pub retry_base_delay: Duration,
    /// The longest delay before the next attempt.
    #[serde(deserialize_with = "duration::<10, 604_800_000, _>")]
    pub retry_max_delay: Duration,
    /// The most messages in flight.
    #[serde(rename = "delivery_concurrency", deserialize_with = "integer::<_, 1, 10_000, _>")]
    pub concurrency: usize,
    /// How often the worker polls the outbox without a wake-up.
    #[serde(deserialize_with = "duration::<10, 3_600_000, _>")]
    pub poll_interval: Duration,
}

/// The dependencies of a worker.
#[derive(Debug, Clone)]
pub struct OutboxPorts {
    /// Stores the messages.
    pub store: Arc<dyn OutboxStore>,
    /// Sends them.
    pub sender: Arc<WebhookSender>,
    /// The secrets that sign messages, by name.
    pub secrets: BTreeMap<String, WebhookSecret>,
    /// Notified when messages were stored, so that the worker polls at once.
    pub wake_up: Arc<Notify>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Counts the attempts; `None` if metrics are off.
    pub metrics: Option<Arc<Metrics>>,
}

/// Messages that were leased.
#[derive(Debug, Default)]
struct Leased {
    due: Vec<DueDelivery>,
    /// Whether there may be more.
    is_full: bool,
}

/// Sends due messages.
#[derive(Debug)]
pub struct OutboxWorker {
    ports: OutboxPorts,
    settings: OutboxSettings,
    worker: WorkerId,
    slots: Arc<Semaphore>,
    receivers: Arc<Receivers>,
}

impl OutboxWorker {
    /// Creates a worker.
    pub fn new(ports: OutboxPorts, settings: OutboxSettings, ids: &dyn IdSource) -> Arc<Self> {
        Arc::new(Self {
            ports,
            settings,
            worker: WorkerId::generate(ids),
            slots: Arc::new(Semaphore::new(settings.concurrency)),
            receivers: Arc::new(Receivers::new(settings.concurrency)),
        })
    }

    /// Sends due messages until it is cancelled. Messages in flight then have two seconds to
    /// arrive. The others are sent again when their leases have expired. So are all messages in
    /// flight if the future is dropped.
    pub async fn run(self: Arc<Self>, cancellation: CancellationToken) {
        let mut sending = JoinSet::new();
        let mut outage = Outage::default();
        while let Some(free) = cancellation.run_until_cancelled(self.free_slots()).await {
            let leased = self.lease(free).await;
            outage.note("no webhooks are sent", &leased);
            let Leased { due, is_full } = leased.unwrap_or_default();
            for due in due {
                let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
                let share = self.receivers.take(&due);
                sending.spawn(Arc::clone(&self).deliver(due, slot, share));
            }
            while sending.try_join_next().is_some() {}
            if !is_full {
                let resting = tokio::time::timeout(self.settings.poll_interval, self.ports.wake_up.notified());
                let _ = cancellation.run_until_cancelled(resting).await;
            }
        }
        if tokio::time::timeout(DRAIN_TIMEOUT, sending.join_all()).await.is_err() {
            tracing::info!("webhooks in flight are cut off and sent again");
        }
    }

    /// Waits for a free slot. Returns the number of free slots.
    async fn free_slots(&self) -> usize {
        // Never fails: the semaphore is never closed. No other task takes slots.
        drop(self.slots.acquire().await);
        self.slots.available_permits()
    }

    /// Leases messages for free slots. A host or a tenant that has used up its share gets more
    /// slots only while no other message is due. Even then some slots stay free, so that messages
    /// of others need not wait when they become due.
    async fn lease(&self, free: usize) -> Result<Leased, StoreError> {
        let now = self.ports.clock.now();
        let share = self.receivers.share();
        let busy = self.receivers.busy();
        let busy_hosts = Busy {
            hosts: busy.hosts.clone(),
            tenants: Vec::new(),
        };
        let mut choices = vec![(busy, 0), (busy_hosts, share / 2), (Busy::default(), share)];
        choices.dedup_by(|later, earlier| later.0 == earlier.0);
        for (except, reserved) in choices {
            let limit = free.saturating_sub(reserved).min(share);
            if limit == 0 {
                break;
            }
            let leased = self.lease_except(now, &except, limit).await?;
            if !leased.due.is_empty() {
                return Ok(leased);
            }
        }
        Ok(Leased::default())
    }

    /// Leases messages that are due `now`, except messages of busy hosts and tenants. The lease
    /// begins with the request for it.
    async fn lease_except(&self, now: Timestamp, busy: &Busy, limit: usize) -> Result<Leased, StoreError> {
        let terms = LeaseTerms {
            worker: self.worker,
            now,
            until: self.ports.clock.now() + self.ports.sender.timeout() + RECORD_TIMEOUT + LEASE_MARGIN,
        };
        let filter = DueFilter {
            limit: u32::try_from(limit).unwrap_or(u32::MAX),
            except_receivers: &busy.hosts,
            except_tenants: &busy.tenants,
        };
        let due = self.ports.store.delivery_lease(&terms, filter).await?;
        Ok(Leased {
            is_full: due.len() == limit,
            due,
        })
    }

    async fn deliver(self: Arc<Self>, due: DueDelivery, _slot: Option<OwnedSemaphorePermit>, share: Share) {
        let (tenant, record) = (due.tenant.clone(), due.record.clone());
        let attempted = if record.attempts > self.settings.max_attempts {
            // The message may have crashed its workers.
            Err(AttemptError::exhausted(&record))
        } else {
            attempt(&self.ports.sender, &self.ports.secrets, due, self.ports.clock.now()).await
        };
        let backoff = Backoff {
            base: self.settings.retry_base_delay,
            max: self.settings.retry_max_delay,
        };
        let now = self.ports.clock.now();
        let outcome = outcome(&record, &attempted, &backoff, self.settings.max_attempts, now);
        if let Some(metrics) = &self.ports.metrics {
            metrics.webhooks.attempted(outcome.status);
        }
        log_attempt(&tenant, &record, &attempted, outcome.status);
        self.record(&tenant, &record, &outcome).await;
        let was_full = share.is_full();
        drop(share);
        if was_full {
            // Other messages to this host or of this tenant were skipped.
            self.ports.wake_up.notify_one();
        }
    }

    async fn record(&self, tenant: &TenantId, leased: &DeliveryRecord, outcome: &DeliveryOutcome) {
        let delivery_id = leased.delivery_id;
        let record = || self.ports.store.delivery_record(tenant, leased, self.worker, outcome);
        let backoff = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_jitter()
            .without_max_times()
            .with_total_delay(Some(RECORD_TIMEOUT));
        match record.retry(backoff).when(StoreError::is_transient).await {
            Ok(true) => (),
            Ok(false) => tracing::info!(%delivery_id, "a webhook delivery was restarted while it was sent"),
            Err(error) => tracing::warn!(
                %delivery_id,
                error = &error as &dyn Error,
                "the result of a webhook delivery can't be stored, so it is sent again"
            ),
        }
    }
}

fn log_attempt(
    tenant: &TenantId,
    record: &DeliveryRecord,
    attempted: &Result<u16, AttemptError>,
    status: DeliveryStatus,
) {
    let (delivery_id, attempts) = (record.delivery_id, record.attempts);
    let run_id = record.run_id.map(tracing::field::display);
    let Err(error) = attempted else {
        tracing::debug!(%delivery_id, run_id, %tenant, attempts, "a webhook was delivered");
        return;
    };
    let (failure, cause) = (error.to_string(), error.cause());
    if status == DeliveryStatus::Dead {
        tracing::warn!(%delivery_id, run_id, %tenant, attempts, failure, cause, "a webhook is given up");
    } else {
        tracing::info!(%delivery_id, run_id, %tenant, attempts, failure, cause, "a webhook failed and is sent again");
    }
}
