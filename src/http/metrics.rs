//! The metrics of the process, for Prometheus.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tokio::task::spawn_blocking;

use super::codes::ProblemCode;
use super::host::is_loopback_host;
use super::parameters::NoParameters;
use super::problem::Problem;
use super::state::Api;
use crate::metrics::{Format, Metrics};
use crate::run::process;

const OPEN_METRICS: &str = "application/openmetrics-text";

/// Returns all metrics, as `OpenMetrics` if the header `Accept` names it, and otherwise in the text
/// format of Prometheus. Only with the setting `metrics.enabled` or `metrics.listen`.
#[utoipa::path(get, path = "/metrics", tag = "service", responses(
    (status = 200, description = "The metrics of this process", content((String = "text/plain"), (String = "application/openmetrics-text"))),
), extensions(("x-problems" = json!([ProblemCode::RouteNotFound]))))]
pub(super) async fn get_metrics(
    State(api): State<Arc<Api>>,
    headers: HeaderMap,
    _: NoParameters,
) -> Result<Response, Problem> {
    let metrics = api.runs.metrics.as_ref().ok_or_else(|| {
        let words = "metrics are off: set `metrics.enabled` or `metrics.listen`";
        Problem::new(ProblemCode::RouteNotFound, words)
    })?;
    // One reader at a time, since encoding takes processor time.
    let _turn = api.metrics_turn.lock().await;
    prepare(&api, metrics).await;
    let (format, content_type) = if accepts_open_metrics(&headers) {
        let words = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        (Format::OpenMetrics, words)
    } else {
        (Format::Text, "text/plain; version=0.0.4; charset=utf-8")
    };
    let metrics = Arc::clone(metrics);
    let encoding = spawn_blocking(move || metrics.encode(format));
    let text = encoding.await.map_err(Problem::internal)?.map_err(Problem::internal)?;
    let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type))];
    Ok((content_type, text).into_response())
}

/// Refuses what no Prometheus sends: web pages, and on a loopback address, requests to other names
/// than those of this machine. So no web page reads metrics by a name of its own.
pub(super) async fn check_reader(
    State(is_loopback): State<bool>,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if request.headers().contains_key(header::ORIGIN) {
        let words = "metrics are not for web pages";
        return Err(Problem::new(ProblemCode::OriginNotAllowed, words));
    }
    if is_loopback && !is_loopback_host(request.headers()) {
        let words = "the address of the metrics responds to loopback names only";
        return Err(Problem::new(ProblemCode::HostNotAllowed, words));
    }
    Ok(next.run(request).await)
}

/// Sets the metrics of what stands now.
async fn prepare(api: &Api, metrics: &Metrics) {
    let runs = &api.runs;
    let (light, queued) = process::runs_in_progress(runs);
    let (hits, misses) = runs.sessions.hits_and_misses();
    metrics.standing.set_runs(light, queued);
    metrics.standing.set_connections(runs.store.connections());
    metrics.standing.set_bundle_lookups(hits, misses);
    metrics.standing.set_redis(runs.board.is_connected());
    for (issuer, age) in api.tokens.iter().flat_map(|tokens| tokens.key_ages(&*runs.clock)) {
        metrics.standing.set_jwks_age(issuer, age);
    }
    let figures = api.queue.figures(&*runs.store).await;
    metrics.standing.set_queue(figures.map(|figures| {
        let age = figures.oldest_waiting.map(|oldest| runs.clock.now() - oldest);
        (figures, age.and_then(|age| age.to_std().ok()).unwrap_or_default())
    }));
    metrics.http.read(api.in_flight.taken());
}

fn accepts_open_metrics(headers: &HeaderMap) -> bool {
    let accepted = headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|item| {
        item.split(';')
            .next()
            .is_some_and(|media| media.trim().eq_ignore_ascii_case(OPEN_METRICS))
    })
}
