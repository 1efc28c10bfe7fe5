//! The delivery of webhooks.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;

use super::registration::Registration;
use agent::record::DeliveryStatus;

/// Metrics of the outbox.
#[derive(Debug)]
pub struct WebhookMetrics {
    deliveries: Family<Attempt, Counter>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Attempt {
    outcome: &'static str,
}

/// Names what became of an attempt.
fn outcome(status: DeliveryStatus) -> &'static str {
    match status {
        DeliveryStatus::Delivered => "delivered",
        DeliveryStatus::Pending => "retried",
        DeliveryStatus::Dead => "dead",
    }
}

impl WebhookMetrics {
    pub(super) fn register(registration: &mut Registration) -> Self {
        let deliveries = Family::default();
        registration.add(
            "webhook_deliveries",
            &["outcome"],
            "Attempts to deliver a webhook, by what became of them",
            &deliveries,
        );
        let metrics = Self { deliveries };
        // A counter that begins with its first failure has no increase.
        for status in [DeliveryStatus::Delivered, DeliveryStatus::Pending, DeliveryStatus::Dead] {
            drop(metrics.counter(status));
        }
        metrics
    }

    /// Counts an attempt, after which a message has this status.
    pub fn attempted(&self, status: DeliveryStatus) {
        self.counter(status).inc();
    }

    fn counter(&self, status: DeliveryStatus) -> Counter {
        let outcome = outcome(status);
        self.deliveries.get_or_create_owned(&Attempt { outcome })
    }
}
