//! The metrics of the process, for Prometheus.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};

use super::codes::ProblemCode;
use super::problem::Problem;
use super::state::Api;
use crate::metrics::{Format, Metrics};
use crate::run::process;

const OPEN_METRICS: &str = "application/openmetrics-text";

/// Returns all metrics, as `OpenMetrics` if the header `Accept` names it, and otherwise in the text
/// format of Prometheus. Only with the setting `metrics.enabled` or `metrics.listen`.
#[utoipa::path(get, path = "/metrics", tag = "service", responses(
    (status = 200, description = "The metrics of this process", content_type = "text/plain", body = String),
), extensions(("x-problems" = json!([ProblemCode::RouteNotFound]))))]
pub(super) async fn get_metrics(State(api): State<Arc<Api>>, headers: HeaderMap) -> Result<Response, Problem> {
    let metrics = api.runs.metrics.as_ref().ok_or_else(|| {
        let words = "metrics are off: set `metrics.enabled` or `metrics.listen`";
        Problem::new(ProblemCode::RouteNotFound, words)
    })?;
    prepare(&api, metrics).await;
    let (format, content_type) = if accepts_open_metrics(&headers) {
        let words = "application/openmetrics-text; version=1.0.0; charset=utf-8";
        (Format::OpenMetrics, words)
    } else {
        (Format::Text, "text/plain; version=0.0.4; charset=utf-8")
    };
    let text = metrics.encode(format).map_err(Problem::internal)?;
    let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static(content_type))];
    Ok((content_type, text).into_response())
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
