//! An outbox with messages, and workers that send them under a clock that the test moves.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use agent::ports::WebhookEvent;
use agent::record::{DeliveryRecord, DeliveryStatus, NewDelivery};
use agent_runtime::outbox::{OutboxPorts, OutboxSettings, OutboxWorker};
use chrono::TimeDelta;
use store::{Store, open};
use test_support::clock::ManualClock;
use test_support::databases::{Engine, TestDatabase};
use test_support::deliveries::{insert, insert_of};
use test_support::wait::until;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tools::webhooks::{SecretTenants, SenderSettings, SigningKeys, WebhookSecret, WebhookSender};
use values::clock::{Clock, Timestamp};
use values::ids::{DeliveryId, RunId, UuidV7Source};
use values::tenant::TenantId;

/// How workers of these tests send: they poll only when they are woken.
pub(super) const SETTINGS: OutboxSettings = OutboxSettings {
    max_attempts: 4,
    retry_base_delay: Duration::from_secs(8),
    retry_max_delay: Duration::from_secs(20),
    concurrency: 4,
    poll_interval: Duration::from_hours(1),
};

/// A sender that reaches this machine.
pub(super) const LOCAL_SENDER: SenderSettings = SenderSettings {
    connect_timeout: Duration::from_secs(5),
    timeout: Duration::from_secs(10),
    max_response_bytes: 1 << 10,
    allow_private_addresses: true,
    allow_http: true,
};

/// An outbox in a database of its own.
#[derive(Debug)]
pub(super) struct Outbox {
    pub(super) store: Arc<dyn Store>,
    pub(super) clock: Arc<ManualClock>,
    pub(super) secrets: BTreeMap<String, WebhookSecret>,
    sign: Arc<Notify>,
    database: TestDatabase,
}

impl Outbox {
    /// Opens an empty one on SQLite.
    pub(super) async fn open() -> Self {
        Self::open_on(Engine::Sqlite).await.unwrap()
    }

    /// Opens an empty one; `None` when there is no server.
    pub(super) async fn open_on(engine: Engine) -> Option<Self> {
        let database = TestDatabase::new(engine).await?;
        Some(Self {
            store: open(database.url(), TestDatabase::settings()).await.unwrap(),
            clock: Arc::new(ManualClock::new()),
            secrets: BTreeMap::new(),
            sign: Arc::new(Notify::new()),
            database,
        })
    }

    /// Writes an unsigned message to the address.
    pub(super) async fn write(&self, url: &str) -> DeliveryId {
        self.write_signed(url, None, self.clock.now()).await
    }

    /// Writes an unsigned message to the address, and wakes a worker.
    pub(super) async fn send(&self, url: &str) -> DeliveryId {
        let id = self.write(url).await;
        self.wake();
        id
    }

    /// Writes a message to the address that is to be signed with the secret.
    pub(super) async fn write_signed(&self, url: &str, secret: Option<&str>, created_at: Timestamp) -> DeliveryId {
        let delivery = message(url, secret, created_at);
        insert(&self.database, RunId::generate(&UuidV7Source), &delivery).await;
        delivery.delivery_id
    }

    /// Writes an unsigned message of another tenant to the address.
    pub(super) async fn write_of(&self, tenant: &str, url: &str) {
        let delivery = message(url, None, self.clock.now());
        insert_of(tenant, &self.database, RunId::generate(&UuidV7Source), &delivery).await;
    }

    /// Adds signing secrets under a name, for all tenants.
    pub(super) fn with_secret(self, name: &str, secrets: &str) -> Self {
        self.with_secret_for(SecretTenants::All, name, secrets)
    }

    /// Adds signing secrets under a name.
    pub(super) fn with_secret_for(mut self, tenants: SecretTenants, name: &str, secrets: &str) -> Self {
        let keys = Some(SigningKeys::parse(secrets).unwrap());
        self.secrets.insert(name.to_owned(), WebhookSecret { keys, tenants });
        self
    }

    /// Starts a worker of its own.
    pub(super) fn work(&self, sender: SenderSettings) -> Working {
        self.work_by(sender, Arc::clone(&self.clock) as _)
    }

    /// Starts a worker of its own, by a clock.
    pub(super) fn work_by(&self, sender: SenderSettings, clock: Arc<dyn Clock>) -> Working {
        self.work_with(SETTINGS, sender, clock)
    }

    /// Starts a worker of its own with settings of its own.
    pub(super) fn work_with(&self, settings: OutboxSettings, sender: SenderSettings, clock: Arc<dyn Clock>) -> Working {
        let ports = OutboxPorts {
            store: Arc::clone(&self.store) as _,
            sender: Arc::new(WebhookSender::new(sender).unwrap()),
            secrets: self.secrets.clone(),
            wake_up: Arc::clone(&self.sign),
            clock,
            metrics: None,
        };
        let stop = CancellationToken::new();
        let worker = OutboxWorker::new(ports, settings, &UuidV7Source);
        let task = tokio::spawn(worker.run(stop.clone()));
        Working { stop, task }
    }

    /// Wakes a worker.
    pub(super) fn wake(&self) {
        self.sign.notify_one();
    }

    /// Puts the clock forward and wakes a worker.
    pub(super) fn advance(&self, by: TimeDelta) {
        self.clock.advance(by);
        self.wake();
    }

    /// Reads a delivery.
    pub(super) async fn read(&self, delivery_id: DeliveryId) -> DeliveryRecord {
        let tenant: TenantId = "acme".parse().unwrap();
        let found = self.store.delivery_lookup(&tenant, delivery_id).await;
        found.unwrap().unwrap()
    }

    /// Waits until an attempt of this number has ended, and returns its record.
    pub(super) async fn until_attempted(&self, delivery_id: DeliveryId, attempts: u32) -> DeliveryRecord {
        until("no such attempt has ended", async || {
            let record = self.read(delivery_id).await;
            let is_noted = record.error.is_some() || record.status == DeliveryStatus::Delivered;
            record.attempts == attempts && is_noted && record.due_at != Some(self.lease_end())
        })
        .await;
        self.read(delivery_id).await
    }

    /// When a lease that is taken now ends: the sender's time, that for noting the outcome, and a
    /// margin.
    pub(super) fn lease_end(&self) -> Timestamp {
        self.clock.now() + TimeDelta::seconds(30)
    }
}

fn message(url: &str, secret: Option<&str>, created_at: Timestamp) -> NewDelivery {
    NewDelivery {
        delivery_id: DeliveryId::generate(&UuidV7Source),
        event: WebhookEvent::Completed,
        url: url.to_owned(),
        secret: secret.map(str::to_owned),
        body: r#"{"type":"run.completed","data":{"words":"Zürich"}}"#.to_owned(),
        trace: None,
        created_at,
    }
}

/// A running worker; it is killed when it is dropped.
#[derive(Debug)]
pub(super) struct Working {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Working {
    /// Asks the worker to end.
    pub(super) fn stop(&self) {
        self.stop.cancel();
    }

    /// Asks the worker to end, and waits for that.
    pub(super) async fn end(mut self) {
        self.stop();
        (&mut self.task).await.unwrap();
    }

    /// Kills the worker and waits until nothing of it is left.
    pub(super) async fn kill(mut self) {
        self.task.abort();
        assert!((&mut self.task).await.unwrap_err().is_cancelled());
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        self.task.abort();
    }
}
