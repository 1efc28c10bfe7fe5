//! Registers metrics, and keeps what the documentation says of them.

use prometheus_client::collector::Collector;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Metric, Registry};

/// Begins the name of each metric of ours.
const PREFIX: &str = "agent_runtime";

/// The metrics that a process has.
#[derive(Debug)]
pub(super) struct Registration {
    registry: Registry,
    described: Vec<Described>,
}

/// A metric, for the documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The name, as queries write it.
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// The names of its labels.
    pub labels: &'static [&'static str],
    /// The meaning, without a full stop.
    pub help: &'static str,
}

impl Registration {
    pub(super) fn begin() -> Self {
        Self {
            registry: Registry::default(),
            described: Vec::new(),
        }
    }

    /// Adds a metric. Its name here has neither the prefix nor the `_total` of counters.
    pub(super) fn add(
        &mut self,
        name: &'static str,
        labels: &'static [&'static str],
        help: &'static str,
        metric: &(impl Metric + Clone),
    ) {
        let full_name = format!("{PREFIX}_{name}");
        self.registry.register(full_name.as_str(), help, metric.clone());
        self.described
            .push(Described::new(full_name, metric.metric_type(), labels, help));
    }

    /// Adds metrics that are read when they are shown, under their full names.
    pub(super) fn add_collector(&mut self, collector: impl Collector, described: impl IntoIterator<Item = Described>) {
        self.registry.register_collector(Box::new(collector));
        self.described.extend(described);
    }

    pub(super) fn end(self) -> (Registry, Vec<Described>) {
        (self.registry, self.described)
    }
}

impl Described {
    pub(super) fn new(
        name: String,
        metric_type: MetricType,
        labels: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        let (name, kind) = match metric_type {
            MetricType::Counter => (name + "_total", "counter"),
            MetricType::Histogram => (name, "histogram"),
            _ => (name, "gauge"),
        };
        Self {
            name,
            kind,
            labels,
            help,
        }
    }
}
