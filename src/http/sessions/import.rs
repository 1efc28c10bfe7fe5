//! `POST /v1/sessions`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use super::etag;
use super::import_body::ImportSession;
use super::view::{Include, SessionView};
use crate::http::Api;
use crate::http::auth::Caller;
use crate::http::idempotency::{KeyedBody, mark_replay};
use crate::http::in_flight::{SMALL, respond_with};
use crate::http::parameters::QueryParameters;
use crate::http::problem::{Problem, ProblemBody};
use crate::run::Imported;

/// Makes a session of given states, without a run.
#[utoipa::path(post, path = "/v1/sessions", tag = "sessions", params(
    ("Idempotency-Key" = Option<String>, Header, pattern = "^[!-~]{1,255}$", description = "The caller's name for the request: sent again, it is answered with the same session"),
), request_body = ImportSession, responses(
    (status = 201, description = "The session as it is stored", body = SessionView, headers(
        ("Location" = String, description = "The path of the session"),
        ("ETag" = String, description = "The root hash of the session"),
        ("Idempotency-Replayed" = Option<String>, description = "`true` where the answer is that of an earlier request with the key"),
    )),
    (status = "default", description = "A problem", body = ProblemBody, content_type = "application/problem+json"),
))]
pub(in crate::http) async fn import_session(
    State(api): State<Arc<Api>>,
    Caller(tenant): Caller,
    query: QueryParameters,
    KeyedBody { key, body }: KeyedBody<ImportSession>,
) -> Result<Response, Problem> {
    query.finish()?;
    let request = body.into_request(&api.service, key)?;
    let Imported { bundle, is_replay } = api.service.runs.import(tenant.clone(), request).await?;
    let mut headers = etag::headers(bundle.head.root_hash);
    let location = format!("/v1/sessions/{}", bundle.head.session_id);
    headers.insert(
        header::LOCATION,
        HeaderValue::from_str(&location).map_err(Problem::internal)?,
    );
    let bytes = bundle.history.bytes();
    let room = api
        .in_flight
        .take(&tenant, if bytes <= SMALL { 0 } else { bytes })
        .await;
    let mut response = respond_with(
        room,
        (StatusCode::CREATED, headers),
        &SessionView::new(&bundle, Include::ALL),
    )?;
    mark_replay(&mut response, is_replay);
    Ok(response)
}
