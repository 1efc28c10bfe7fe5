//! The route: checks a request as `/v1` does, and lets rmcp serve its message.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::accept::Accepted;
use super::message::{Message, MessageFault};
use super::server::McpServer;
use crate::http::auth::Call;
use crate::http::codes::ProblemCode;
use crate::http::guards::within;
use crate::http::host::check_origin;
use crate::http::json_body::{check_media_type, read_body};
use crate::http::problem::Problem;
use crate::http::state::Api;
use tasks::off_thread::by_size;
use values::json::Value;

/// The header by which clients of revision 2025-03-26 and later name it.
const PROTOCOL_VERSION: &str = "mcp-protocol-version";
const BOTH_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
/// The first revision whose requests are complete in themselves.
const STATELESS_REVISION: &str = "2026-07-28";

/// Serves one message.
pub(in crate::http) async fn serve_mcp(
    call: Call,
    State(api): State<Arc<Api>>,
    request: Request,
) -> Result<Response, Problem> {
    let Some(settings) = api.mcp.clone() else {
        return Err(Problem::new(ProblemCode::RouteNotFound, "`http.mcp.enabled` is false"));
    };
    check_origin(request.headers(), &api.limits)?;
    check_media_type(request.headers())?;
    let accepted = Accepted::of(request.headers());
    if !accepted.json && !accepted.events {
        let words = "the header Accept must allow application/json or text/event-stream".to_owned();
        return Ok(MessageFault::refusal(StatusCode::NOT_ACCEPTABLE, words, Value::Null).into_response());
    }
    let mut forwarded = axum::http::Request::post(request.uri());
    if let Some(headers) = forwarded.headers_mut() {
        *headers = request.headers().clone();
        // No part of the library needs the key.
        headers.remove(header::AUTHORIZATION);
        // The library compares the header with both types.
        headers.insert(header::ACCEPT, BOTH_TYPES);
    }
    let (bytes, room) = read_body(request, &api).await?.into_parts();
    let (length, reader) = (bytes.len() as u64, Arc::clone(&api));
    let is_stateless = is_stateless(forwarded.headers_ref());
    let reading = move || Message::read(bytes, &reader.limits, is_stateless);
    let message = by_size(&call.tenant, length, reading).await;
    drop(room);
    let message = match message {
        Ok(message) => message,
        Err(fault) => return Ok(fault.into_response()),
    };
    if let Some(scope) = message.scope() {
        call.check_scope(scope)?;
    }
    if message.is_response() {
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let is_of_run = message.runs();
    let server = McpServer::new(call, settings);
    let sent = server.sent.clone();
    // A run of an earlier revision may take minutes, and a silent response would be cut.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(!accepted.events || (accepted.json && (is_stateless || !is_of_run)))
        .with_sse_keep_alive(Some(api.limits.keep_alive_interval))
        // The body has been read within the limit of the service.
        .with_max_request_body_bytes(usize::MAX)
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let Message { bytes, id, .. } = message;
    let forwarded = forwarded.body(Full::new(Bytes::from(bytes)));
    let serving = service.handle(forwarded.map_err(Problem::internal)?);
    let response = if is_of_run {
        serving.await
    } else {
        within(api.limits.request_timeout, serving).await?
    };
    if is_plain_refusal(&response) {
        let status = response.status();
        let words = response.into_body().collect().await.map(Collected::to_bytes);
        let words = words.map(|words| String::from_utf8_lossy(&words).into_owned());
        return Ok(MessageFault::refusal(status, words.unwrap_or_default(), id).into_response());
    }
    // The room of a response is released when its body has been sent or dropped.
    let response = response.map(|body| {
        Body::new(body.map_frame(move |frame| {
            let _sent = &sent;
            frame
        }))
    });
    Ok(response)
}

/// Returns whether the library refuses a request in words, which clients of JSON-RPC can't read.
fn is_plain_refusal<B>(response: &axum::http::Response<B>) -> bool {
    let media_type = response.headers().get(header::CONTENT_TYPE);
    let is_json = media_type.is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    response.status().is_client_error() && !is_json
}

fn is_stateless(headers: Option<&axum::http::HeaderMap>) -> bool {
    let version = headers.and_then(|headers| headers.get(PROTOCOL_VERSION));
    version.is_some_and(|version| version.as_bytes() >= STATELESS_REVISION.as_bytes())
}
