//! What stands at the moment of a read: the queue, connections and caches. The reader sets it.

use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

use super::registration::Registration;
use ::store::Connections;
use ::store::queue::QueueFigures;

/// Metrics of the state of the process and of the store.
#[derive(Debug)]
pub struct StandingMetrics {
    build: Family<Build, Gauge>,
    queue: Family<State, Gauge>,
    oldest_waiting: Family<Bare, Gauge<f64, AtomicU64>>,
    runs: Family<Kind, Gauge>,
    connections: Family<State, Gauge>,
    bundles: Family<Lookup, Counter>,
    redis: Family<Bare, Gauge>,
    jwks_age: Family<Issuer, Gauge<f64, AtomicU64>>,
}

/// No labels. A family with them can be without a value.
type Bare = [(&'static str, &'static str); 0];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
    role: &'static str,
    store: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct State {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lookup {
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Issuer {
    issuer: String,
}

impl StandingMetrics {
    pub(super) fn register(registration: &mut Registration) -> Self {
        let metrics = Self {
            build: Family::default(),
            queue: Family::default(),
            oldest_waiting: Family::default(),
            runs: Family::default(),
            connections: Family::default(),
            bundles: Family::default(),
            redis: Family::default(),
            jwks_age: Family::default(),
        };
        registration.add(
            "build_info",
            &["version", "role", "store"],
            "The version of the process",
            &metrics.build,
        );
        registration.add(
            "queue_runs",
            &["state"],
            "Runs in the queue of the store, by state, at most 10000 of each; the same in every process, and absent while \
             it can't be read",
            &metrics.queue,
        );
        registration.add(
            "queue_oldest_waiting_seconds",
            &[],
            "How long the run that waits longest has waited for a worker; 0 if none waits",
            &metrics.oldest_waiting,
        );
        registration.add(
            "runs_in_progress",
            &["kind"],
            "Runs in progress in this process",
            &metrics.runs,
        );
        registration.add(
            "store_connections",
            &["state"],
            "Connections to the database",
            &metrics.connections,
        );
        registration.add(
            "bundle_lookups",
            &["outcome"],
            "Sessions that were looked up in the cache of bundles",
            &metrics.bundles,
        );
        registration.add(
            "redis_up",
            &[],
            "Whether Redis answers; absent without Redis",
            &metrics.redis,
        );
        registration.add(
            "jwks_age_seconds",
            &["issuer"],
            "How long ago the keys of an identity provider were read; if they never were, how long the process has tried \
             to",
            &metrics.jwks_age,
        );
        metrics
    }

    /// Sets the role of the process and the kind of its store, such as `all` and `sqlite`.
    pub fn set_build(&self, role: &'static str, store: &'static str) {
        let version = env!("CARGO_PKG_VERSION");
        self.build.get_or_create(&Build { version, role, store }).set(1);
    }

    /// Sets the figures of the queue, and the age of the run that waits longest. `None` if they are
    /// not known.
    pub fn set_queue(&self, figures: Option<(QueueFigures, Duration)>) {
        let Some((figures, age)) = figures else {
            self.queue.clear();
            self.oldest_waiting.clear();
            return;
        };
        let set = |state, count: u64| set(&self.queue, &State { state }, count);
        set("waiting", figures.waiting);
        set("held", figures.held);
        set("leased", figures.leased);
        self.oldest_waiting.get_or_create(&[]).set(age.as_secs_f64());
    }

    /// Sets the number of runs in progress.
    pub fn set_runs(&self, light: usize, queued: usize) {
        set(&self.runs, &Kind { kind: "light" }, light as u64);
        set(&self.runs, &Kind { kind: "queued" }, queued as u64);
    }

    /// Sets the connections to the database.
    pub fn set_connections(&self, connections: Connections) {
        let Connections { busy, idle } = connections;
        set(&self.connections, &State { state: "busy" }, busy.into());
        set(&self.connections, &State { state: "idle" }, idle.into());
    }

    /// Sets how often the cache had a bundle, and how often it had not.
    pub fn set_bundle_lookups(&self, hits: u64, misses: u64) {
        for (outcome, count) in [("hit", hits), ("miss", misses)] {
            // Two readers at once may come in another order than their counts.
            let counter = self.bundles.get_or_create(&Lookup { outcome });
            counter.inner().fetch_max(count, Ordering::Relaxed);
        }
    }

    /// Sets how old the keys of an identity provider are, by its name in the configuration.
    pub fn set_jwks_age(&self, issuer: &str, age: Duration) {
        let issuer = issuer.to_owned();
        self.jwks_age.get_or_create(&Issuer { issuer }).set(age.as_secs_f64());
    }

    /// Sets whether Redis answers; `None` without Redis.
    pub fn set_redis(&self, is_up: Option<bool>) {
        if let Some(is_up) = is_up {
            self.redis.get_or_create(&[]).set(is_up.into());
        }
    }
}

fn set<L: Clone + Hash + Eq>(gauges: &Family<L, Gauge>, labels: &L, count: u64) {
    gauges
        .get_or_create(labels)
        .set(i64::try_from(count).unwrap_or(i64::MAX));
}
