//! What the process counts and measures, for Prometheus. Decides nothing.
//!
//! A group of metrics is a struct with a method for each thing that happens, such as
//! [`RunMetrics::ended`]. The groups are made once. If metrics are off, there are none, so nothing
//! is counted.
//!
//! The values of labels come from closed sets, except names that callers can make up: of agents,
//! models and tools. The first hundred of these have series of their own, the others share
//! `other`. No label has an id, an address or a text of an error.

mod http;
mod models;
mod names;
mod process;
mod registration;
mod runs;
mod settings;
mod standing;
mod store;
mod tls;
mod webhooks;

use std::fmt;
use std::sync::Arc;

use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;

pub use self::http::{HttpMetrics, OpenGuard};
pub use self::models::{ModelMetrics, ObservedModels};
pub use self::registration::Described;
use self::registration::Registration;
pub use self::runs::{RunKind, RunMetrics};
pub use self::settings::MetricsSettings;
pub use self::standing::StandingMetrics;
pub use self::store::StoreMetrics;
pub use self::tls::TlsMetrics;
pub use self::webhooks::WebhookMetrics;

/// All metrics of the process.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    described: Vec<Described>,
    pub http: HttpMetrics,
    pub tls: TlsMetrics,
    pub runs: RunMetrics,
    pub models: ModelMetrics,
    pub store: Arc<StoreMetrics>,
    pub webhooks: WebhookMetrics,
    pub standing: StandingMetrics,
    dropped_spans: Counter,
}

/// A format in which metrics are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The text format 0.0.4 of Prometheus.
    Text,
    /// `OpenMetrics` 1.0.0.
    OpenMetrics,
}

impl Metrics {
    /// Makes the metrics of a process.
    pub fn new(settings: &MetricsSettings) -> Self {
        let mut registration = Registration::begin();
        let standing = StandingMetrics::register(&mut registration);
        let http = HttpMetrics::register(&mut registration);
        let tls = TlsMetrics::register(&mut registration);
        let runs = RunMetrics::register(&mut registration, settings.tenants.clone());
        let models = ModelMetrics::register(&mut registration);
        let store = Arc::new(StoreMetrics::register(&mut registration));
        let webhooks = WebhookMetrics::register(&mut registration);
        let dropped_spans = Counter::default();
        let help = "Spans that were not sent: too many waited, or the collector did not take them";
        registration.add("spans_dropped", &[], help, &dropped_spans);
        process::register(&mut registration);
        let (registry, described) = registration.end();
        Self {
            registry,
            described,
            http,
            tls,
            runs,
            models,
            store,
            webhooks,
            standing,
            dropped_spans,
        }
    }

    /// Counts spans that were not sent.
    pub fn spans_dropped(&self, spans: u64) {
        self.dropped_spans.inc_by(spans);
    }

    /// Returns all metrics, also those that have no value yet.
    pub fn described(&self) -> &[Described] {
        &self.described
    }

    /// Writes all metrics.
    pub fn encode(&self, format: Format) -> Result<String, fmt::Error> {
        let mut written = String::new();
        match format {
            Format::Text => prometheus_text::encode(&mut written, &self.registry)?,
            Format::OpenMetrics => text::encode(&mut written, &self.registry)?,
        }
        Ok(written)
    }
}
