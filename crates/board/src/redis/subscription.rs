//! The dedicated connection that receives messages of other processes. It reconnects after an
//! outage.
//!
//! Messages during an outage are lost. So all waiting readers then poll once, and the readers of
//! changes of tenants are interrupted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use redis::Msg;
use redis::aio::PubSub;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::keys::{CHANGES_CHANNEL, CONTROL_CHANNEL, FEED_CHANNEL};
use super::link::Link;
use super::messages::{Notification, Origin};
use crate::local::LocalBoard;

/// The first and the longest pause between two attempts to subscribe.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// Failures are logged after this number in a row, if requests succeed meanwhile.
const MANY_FAILURES: u32 = 5;

/// Receives the messages of other processes.
#[derive(Debug)]
pub(super) struct Subscription {
    pub(super) local: Arc<LocalBoard>,
    pub(super) link: Arc<Link>,
    pub(super) origin: Origin,
    /// Whether this process is among the subscribers.
    pub(super) is_subscribed: Arc<AtomicBool>,
    /// How often the connection is checked.
    pub(super) pulse: Duration,
    pub(super) end: CancellationToken,
}

impl Subscription {
    /// Receives until the end.
    pub(super) async fn run(self: Arc<Self>) {
        let end = self.end.clone();
        end.run_until_cancelled(self.receive_always()).await;
    }

    async fn receive_always(&self) {
        let (mut pause, mut failures) = (PAUSES.0, 0);
        loop {
            let outages = self.link.outages();
            let channels = [CHANGES_CHANNEL, CONTROL_CHANNEL, FEED_CHANNEL];
            match self.link.subscribe(&channels).await {
                Ok(subscription) => {
                    (pause, failures) = (PAUSES.0, 0);
                    self.is_subscribed.store(true, Ordering::SeqCst);
                    self.local.changes.notify_all();
                    self.local.feeds.interrupt();
                    self.receive(subscription, outages).await;
                    self.is_subscribed.store(false, Ordering::SeqCst);
                }
                Err(error) => {
                    failures += 1;
                    if failures == MANY_FAILURES && !self.link.is_lost() {
                        tracing::warn!(
                            error = &error as &dyn std::error::Error,
                            "messages of other replicas are not received; their runs are followed slowly"
                        );
                    }
                    sleep(pause).await;
                    pause = PAUSES.1.min(pause * 2);
                }
            }
        }
    }

    /// Receives until the connection is dead, or may lead to a server that is no longer the right
    /// one.
    async fn receive(&self, subscription: PubSub, outages: u64) {
        let (mut sink, mut messages) = subscription.split();
        let mut pulse = interval(self.pulse.max(Duration::from_millis(1)));
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = messages.next() => match message {
                    Some(message) => self.take(&message),
                    None => return,
                },
                () = self.link.restored() => if self.link.outages() != outages {
                    return;
                },
                _ = pulse.tick() => {
                    let alive = timeout(self.link.timeout(), sink.ping::<redis::Value>()).await;
                    if !matches!(alive, Ok(Ok(_))) {
                        return;
                    }
                }
            }
        }
    }

    fn take(&self, message: &Msg) {
        if message.get_channel_name() == FEED_CHANNEL && !self.local.feeds.has_readers() {
            return;
        }
        match self
            .origin
            .read(message.get_channel_name(), message.get_payload_bytes())
        {
            Some(Notification::Changes(runs)) => {
                for run_id in runs {
                    self.local.changes.notify(run_id);
                }
            }
            Some(Notification::Feed(batch)) => {
                if batch.has_gap {
                    self.local.feeds.interrupt();
                }
                for (tenant, change) in batch.changes {
                    self.local.feeds.publish(&tenant, &change);
                }
            }
            Some(Notification::Control(message)) => {
                self.local.control.send(message);
            }
            None => {}
        }
    }
}
