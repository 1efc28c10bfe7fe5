//! Requests, responses and connections.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::RwLock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;

use super::names::OTHER;
use super::registration::Registration;

/// The upper bounds of the durations of responses, in seconds.
const SECONDS: [f64; 7] = [0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 30.0];
/// The methods with series of their own.
const METHODS: [&str; 7] = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];

const METHOD_NOT_ALLOWED: u16 = 405;

/// Metrics of the HTTP interface.
#[derive(Debug)]
pub struct HttpMetrics {
    requests: Family<Answered, Counter>,
    durations: Family<Route, Histogram, fn() -> Histogram>,
    refusals: Family<Refused, Counter>,
    connections: Gauge,
    streams: Gauge,
    connections_by_kind: Family<Kind, Gauge>,
    in_flight: Gauge,
    /// The metrics of answers that were counted already, so that counting one allocates nothing.
    known: RwLock<HashMap<String, Vec<Known>>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answered {
    route: String,
    method: &'static str,
    status: u16,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
    method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Refused {
    code: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Debug, Clone)]
struct Known {
    method: &'static str,
    status: u16,
    count: Counter,
    duration: Histogram,
}

/// Something open that is counted until it is dropped.
#[derive(Debug)]
pub struct OpenGuard(Gauge);

impl OpenGuard {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl HttpMetrics {
    pub(super) fn register(registration: &mut Registration) -> Self {
        let requests = Family::default();
        registration.add(
            "http_requests",
            &["route", "method", "status"],
            "Answered requests",
            &requests,
        );
        let durations = Family::<_, _, fn() -> Histogram>::new_with_constructor(|| Histogram::new(SECONDS));
        registration.add(
            "http_request_duration_seconds",
            &["route", "method"],
            "From the head of a request to the head of its response",
            &durations,
        );
        let refusals = Family::default();
        registration.add(
            "http_refusals",
            &["code"],
            "Responses with a problem, by its code",
            &refusals,
        );
        let connections_by_kind = Family::default();
        registration.add(
            "connections",
            &["kind"],
            "Open connections of callers: those with an open event stream, and the others. \
             A connection with several streams counts once for each",
            &connections_by_kind,
        );
        let in_flight = Gauge::default();
        registration.add(
            "http_in_flight_bytes",
            &[],
            "Bytes of responses and of received bodies in flight",
            &in_flight,
        );
        Self {
            requests,
            durations,
            refusals,
            connections: Gauge::default(),
            streams: Gauge::default(),
            connections_by_kind,
            in_flight,
            known: RwLock::default(),
        }
    }

    /// Counts a response. The route is the path with the names of its parameters.
    pub fn answered(&self, method: &str, route: &str, status: u16, duration: Duration) {
        let known = METHODS.into_iter().find(|known| *known == method);
        // No route has the method, and anybody may try each with each.
        let known = known.filter(|_| status != METHOD_NOT_ALLOWED);
        let Some(method) = known else {
            self.known(OTHER, OTHER, status).count.inc();
            return;
        };
        let known = self.known(method, route, status);
        known.count.inc();
        known.duration.observe(duration.as_secs_f64());
    }

    fn known(&self, method: &'static str, route: &str, status: u16) -> Known {
        let is_it = |known: &&Known| known.method == method && known.status == status;
        if let Some(known) = self.known.read().get(route).and_then(|known| known.iter().find(is_it)) {
            return known.clone();
        }
        let answered = Answered {
            route: route.to_owned(),
            method,
            status,
        };
        let route = Route {
            route: route.to_owned(),
            method,
        };
        let known = Known {
            method,
            status,
            count: self.requests.get_or_create_owned(&answered),
            duration: self.durations.get_or_create_owned(&route),
        };
        // Two requests at once may add it twice. Both entries then lead to the same metrics.
        self.known.write().entry(route.route).or_default().push(known.clone());
        known
    }

    /// Counts a response with a problem.
    pub fn refused(&self, code: &'static str) {
        self.refusals.get_or_create(&Refused { code }).inc();
    }

    /// Counts a connection until the guard is dropped.
    pub fn connection_opened(&self) -> OpenGuard {
        OpenGuard::new(&self.connections)
    }

    /// Counts an event stream until the guard is dropped.
    pub fn stream_opened(&self) -> OpenGuard {
        OpenGuard::new(&self.streams)
    }

    /// Prepares what is read now.
    pub fn read(&self, bytes_in_flight: usize) {
        let streams = self.streams.get();
        let kind = |kind, count| self.connections_by_kind.get_or_create(&Kind { kind }).set(count);
        kind("stream", streams);
        kind("request", (self.connections.get() - streams).max(0));
        self.in_flight.set(i64::try_from(bytes_in_flight).unwrap_or(i64::MAX));
    }
}
