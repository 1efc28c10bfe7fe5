//! Memory, processor time and file descriptors of the process, under the names that client
//! libraries of Prometheus share, and how busy its threads are.
//!
//! Source: <https://prometheus.io/docs/instrumenting/writing_clientlibs/#process-metrics>.

use std::fmt;
use std::fs;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric as _};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::process::{Resource, getrlimit};
use tokio::runtime::{Handle, RuntimeMetrics};

use super::registration::{Described, Registration};

/// Reads `/proc` at each read of the metrics.
#[derive(Debug)]
struct ProcessCollector;

/// What `/proc/self/stat` says.
#[derive(Debug, PartialEq)]
struct Stat {
    cpu_seconds: f64,
    started_after_boot: f64,
    virtual_bytes: u64,
    resident_bytes: u64,
}

/// A metric that is read when it is shown.
struct Shown {
    name: &'static str,
    kind: MetricType,
    help: &'static str,
    /// Returns the value; `None` if the system does not tell it.
    value: fn(&Read) -> Option<f64>,
}

/// What was read for one reader of the metrics.
struct Read {
    stat: Option<Stat>,
    runtime: Option<RuntimeMetrics>,
}

/// The metrics, in the order in which they are shown.
const METRICS: [Shown; 9] = [
    Shown {
        name: "process_cpu_seconds",
        kind: MetricType::Counter,
        help: "Processor time of the process, user and system",
        value: |read| Some(read.stat.as_ref()?.cpu_seconds),
    },
    Shown {
        name: "process_resident_memory_bytes",
        kind: MetricType::Gauge,
        help: "Resident memory of the process",
        value: |read| Some(as_float(read.stat.as_ref()?.resident_bytes)),
    },
    Shown {
        name: "process_virtual_memory_bytes",
        kind: MetricType::Gauge,
        help: "Virtual memory of the process",
        value: |read| Some(as_float(read.stat.as_ref()?.virtual_bytes)),
    },
    Shown {
        name: "process_start_time_seconds",
        kind: MetricType::Gauge,
        help: "When the process was started, in seconds since 1970",
        value: |read| Some(boot_time()? + read.stat.as_ref()?.started_after_boot),
    },
    Shown {
        name: "process_open_fds",
        kind: MetricType::Gauge,
        help: "Open file descriptors",
        // The directory itself is open meanwhile.
        value: |_| {
            Some(as_float(
                fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1) as u64
            ))
        },
    },
    Shown {
        name: "process_max_fds",
        kind: MetricType::Gauge,
        help: "The most file descriptors",
        value: |_| getrlimit(Resource::Nofile).current.map(as_float),
    },
    Shown {
        name: "agent_runtime_threads",
        kind: MetricType::Gauge,
        help: "Threads that execute tasks",
        value: |read| Some(as_float(read.runtime.as_ref()?.num_workers() as u64)),
    },
    Shown {
        name: "agent_runtime_threads_busy_seconds",
        kind: MetricType::Counter,
        help: "How long threads have executed tasks",
        value: |read| {
            let runtime = read.runtime.as_ref()?;
            let busy = (0..runtime.num_workers()).map(|worker| runtime.worker_total_busy_duration(worker));
            Some(busy.sum::<Duration>().as_secs_f64())
        },
    },
    Shown {
        name: "agent_runtime_tasks",
        kind: MetricType::Gauge,
        help: "Tasks that have not ended",
        value: |read| Some(as_float(read.runtime.as_ref()?.num_alive_tasks() as u64)),
    },
];

pub(super) fn register(registration: &mut Registration) {
    let described = |metric: Shown| Described::new(metric.name.to_owned(), metric.kind, &[], metric.help);
    registration.add_collector(ProcessCollector, METRICS.map(described));
}

impl Collector for ProcessCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let read = Read {
            stat: stat
                .as_deref()
                .and_then(|text| Stat::parse(text, page_bytes(), ticks())),
            runtime: Handle::try_current().ok().map(|handle| handle.metrics()),
        };
        for metric in METRICS {
            let Some(value) = (metric.value)(&read) else { continue };
            let help = format!("{}.", metric.help);
            let shown = encoder.encode_descriptor(metric.name, &help, None, metric.kind)?;
            match metric.kind {
                MetricType::Counter => ConstCounter::new(value).encode(shown)?,
                _ => ConstGauge::new(value).encode(shown)?,
            }
        }
        Ok(())
    }
}

impl Stat {
    /// Parses the line. The name of the process comes second, in parentheses, and may have any
    /// characters.
    fn parse(text: &str, page_bytes: u64, ticks: u64) -> Option<Self> {
        let (_, fields) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
        // Numbered from 1 in proc(5), where the state is the third.
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let seconds = |of_clock: u64| as_float(of_clock) / as_float(ticks);
        Some(Self {
            cpu_seconds: seconds(field(14)? + field(15)?),
            started_after_boot: seconds(field(22)?),
            virtual_bytes: field(23)?,
            resident_bytes: field(24)?.saturating_mul(page_bytes),
        })
    }
}

/// When the machine was booted, in seconds since 1970.
fn boot_time() -> Option<f64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

fn page_bytes() -> u64 {
    rustix::param::page_size() as u64
}

fn ticks() -> u64 {
    rustix::param::clock_ticks_per_second()
}

#[expect(clippy::cast_precision_loss, reason = "metrics are floats")]
fn as_float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_process_may_have_any_characters() {
        let text = "7 (a) S 1) R 1 7 7 0 -1 4194304 100 0 0 0 150 50 0 0 20 0 9 0 4200 1048576 3 18446744073709551615";
        let stat = Stat::parse(text, 4096, 100).unwrap();
        assert_eq!(
            stat,
            Stat {
                cpu_seconds: 2.0,
                started_after_boot: 42.0,
                virtual_bytes: 1_048_576,
                resident_bytes: 12_288,
            }
        );
        assert_eq!(Stat::parse("7 (a) R 1", 4096, 100), None);
    }
}
