//! The requests of streamable HTTP, through the guard.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _};
use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ConstString as _, DiscoverRequestMethod, ErrorCode, ErrorData, JsonRpcMessage, RequestId,
    ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::body::{Counted, events};
use super::credentials::Credentials;
use super::events;
use super::text::is_of_events;
use crate::mcp::in_flight::Requests;
use crate::mcp::incoming::{Awaited, Awaiting, Incoming, message};
use net::outgoing::{
    HeaderMap, HeaderName, HeaderValue, Method, OutgoingClient, OutgoingError, OutgoingRequest, OutgoingResponse,
    Target,
};

const ACCEPTED_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The errors of a server that has read a request, which an unknown session does not have.
const AFTER_READING: [ErrorCode; 3] = [
    ErrorCode::METHOD_NOT_FOUND,
    ErrorCode::INVALID_PARAMS,
    ErrorCode::INTERNAL_ERROR,
];
/// The most bytes of a body of an error that is not JSON.
const MAX_ERROR: usize = 16 << 10;

type Error = StreamableHttpError<OutgoingError>;

/// Sends the messages of one connection to a server.
///
/// The library does not end a request of the handshake when its transport is dropped. So each
/// connection has a token that ends all of its requests.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct GuardedHttp {
    server: Arc<HttpServer>,
    requests: Arc<Requests>,
    incoming: Incoming,
    closed: CancellationToken,
    /// The requests that are sent again in a new session.
    repeated: Arc<Mutex<HashSet<RequestId>>>,
}

/// A server, as all of its connections reach it.
#[derive(Debug)]
pub(super) struct HttpServer {
    pub(super) client: OutgoingClient,
    pub(super) target: Target,
    pub(super) credentials: Credentials,
    pub(super) max_response_bytes: usize,
}

/// A request without the credentials.
struct Plain {
    method: Method,
    headers: HeaderMap,
    body: Option<Bytes>,
}

impl GuardedHttp {
    /// Makes the client of a new connection. Its requests end when the guard is dropped.
    pub(super) fn new(server: &Arc<HttpServer>, requests: &Arc<Requests>, incoming: Incoming) -> (Self, DropGuard) {
        let closed = CancellationToken::new();
        let guard = closed.clone().drop_guard();
        let client = Self {
            server: Arc::clone(server),
            requests: Arc::clone(requests),
            incoming,
            closed,
            repeated: Arc::default(),
        };
        (client, guard)
    }

    /// Waits for a request, unless the connection closes before.
    async fn until_closed<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let done = self.closed.run_until_cancelled(request).await;
        done.unwrap_or(Err(Error::TransportChannelClosed))
    }

    /// Returns the events of a body until the connection closes: those of the response to a
    /// request, or else of a stream that has no end.
    fn events(
        &self,
        body: impl Stream<Item = Result<Bytes, OutgoingError>> + Send + 'static,
        request: Option<&Awaited>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let (requests, incoming) = (Arc::clone(&self.requests), self.incoming.clone());
        let request = request.cloned();
        let counted = if request.is_some() { Counted::All } else { Counted::Each };
        let events = events(body, self.server.max_response_bytes, counted).then(move |event| {
            let (requests, incoming, request) = (Arc::clone(&requests), incoming.clone(), request.clone());
            async move {
                let awaiting = request.map_or_else(|| requests.open.awaiting(), Awaiting::One);
                events::read(&incoming, &requests, awaiting, event?).await
            }
        });
        let events = events.flat_map(|read| {
            let read = read.map_or_else(|error| vec![Err(error)], |events| events.into_iter().map(Ok).collect());
            stream::iter(read)
        });
        events.take_until(self.closed.clone().cancelled_owned()).boxed()
    }

    /// Returns the messages of a body that was read. Its beginning decides its type.
    async fn messages(&self, body: &Bytes) -> Vec<Bytes> {
        if !is_of_events(body) {
            return self.incoming.messages(body.clone()).await;
        }
        let mut events = events(whole(body), self.server.max_response_bytes, Counted::All);
        let mut messages = Vec::new();
        while let Some(event) = events.next().await {
            let data = event.ok().and_then(|event| event.data);
            if let Some(data) = data.filter(|data| !data.trim().is_empty()) {
                messages.extend(self.incoming.messages(data.into()).await);
            }
        }
        messages
    }

    /// Sends a request. If the server refuses the access token, sends it again with a new one.
    async fn send(&self, plain: Plain) -> Result<OutgoingResponse, Error> {
        let HttpServer {
            client,
            target,
            credentials,
            ..
        } = &*self.server;
        let mut is_first = true;
        loop {
            let of_caller = credentials.headers().await.map_err(Error::Client)?;
            let mut headers = plain.headers.clone();
            headers.extend(of_caller.clone());
            let response = client.send(OutgoingRequest {
                method: plain.method.clone(),
                target: target.clone(),
                headers: HeaderMap::new(),
                origin_headers: headers,
                body: plain.body.clone(),
                max_redirects: 0,
            });
            let response = response.await.map_err(Error::Client)?;
            let is_refused = matches!(response.status(), 401 | 403);
            if is_refused && is_first && response.status() == 401 && credentials.renew(&of_caller).await {
                is_first = false;
                continue;
            }
            if is_refused {
                return Err(Error::AuthRequired(AuthRequiredError::new(String::new())));
            }
            return Ok(response);
        }
    }

    async fn post(
        &self,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let has_session = session_id.is_some();
        let mut headers = headers_of(session_id.as_deref(), headers)?;
        headers.insert("content-type", HeaderValue::from_static("application/json"));
        let plain = Plain {
            method: Method::POST,
            headers,
            body: Some(serde_json::to_vec(&message)?.into()),
        };
        let response = self.send(plain).await?;
        let status = response.status();
        let Some(request) = Awaited::of(&message) else {
            return match status {
                404 if has_session => Err(Error::SessionExpired),
                200..300 => Ok(StreamableHttpPostResponse::Accepted),
                // An error of the protocol, which nobody waits for.
                _ if media_type(&response).as_deref() == Some("application/json") => {
                    Ok(StreamableHttpPostResponse::Accepted)
                }
                status => Err(HttpStatusError::new(status, None).into()),
            };
        };
        let reply = match status {
            404 if has_session => Err(Error::SessionExpired),
            200..300 if media_type(&response).as_deref() == Some("text/event-stream") => {
                let session_id = text(response.headers(), &SESSION_ID);
                let events = self.events(response.into_stream(), Some(&request));
                Ok(StreamableHttpPostResponse::Sse(events, session_id))
            }
            _ => self.reply(&request, response, has_session).await,
        };
        if !matches!(reply, Err(Error::SessionExpired)) {
            self.repeated.lock().remove(&request.id);
        }
        reply
    }

    /// Reads the response to a request, which is not a stream by its type.
    async fn reply(
        &self,
        request: &Awaited,
        response: OutgoingResponse,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, Error> {
        let (status, session_id) = (response.status(), text(response.headers(), &SESSION_ID));
        let is_success = (200..300).contains(&status);
        let kind = media_type(&response);
        let is_json = kind.as_deref() == Some("application/json");
        let max = if is_json || is_success {
            self.server.max_response_bytes
        } else {
            MAX_ERROR
        };
        let body = response.read(max).await.map_err(Error::Client)?;
        if is_success && !body.is_complete {
            return Err(Error::ResponseBodyTooLarge { max_size: max });
        }
        let mut messages = self.messages(&body.bytes).await;
        if is_success && messages.len() > 1 {
            // The library takes several messages only from a stream.
            let events = self.events(whole(&body.bytes), Some(request));
            return Ok(StreamableHttpPostResponse::Sse(events, session_id));
        }
        let is_empty = body.bytes.trim_ascii().is_empty();
        let json = messages.pop().unwrap_or(body.bytes);
        let awaiting = Awaiting::One(request.clone());
        let read = self.incoming.read(json, awaiting, |sent| {
            let is_unread = sent.is_unread;
            message(sent.value).map(|message| (message, is_unread))
        });
        let read = read.await.and_then(|read| read);
        let is_unread = read.as_ref().map_or(status == 400, |(_, is_unread)| *is_unread);
        let may_be_of_session = match &read {
            Ok((JsonRpcMessage::Error(error), _)) => !AFTER_READING.contains(&error.error.code),
            Ok(_) => false,
            Err(_) => true,
        };
        if has_session && may_be_of_session {
            if is_unread && self.repeated.lock().insert(request.id.clone()) {
                return Err(Error::SessionExpired);
            }
            if (400..500).contains(&status) {
                self.requests.outdated.cancel();
            }
        }
        match read {
            Ok((message @ JsonRpcMessage::Error(_), _)) => Ok(StreamableHttpPostResponse::Json(message, None)),
            Ok((message @ JsonRpcMessage::Response(_), _)) if is_success => {
                Ok(StreamableHttpPostResponse::Json(message, session_id))
            }
            // A server of an older revision may refuse the first request before it reads it.
            _ if request.method == DiscoverRequestMethod::VALUE && (400..500).contains(&status) => {
                let error = ErrorData::invalid_request(format!("HTTP {status}"), None);
                let refused = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                Ok(StreamableHttpPostResponse::Json(refused, None))
            }
            // The server has accepted the request, but a response will never come.
            _ if is_empty || !is_success => Err(HttpStatusError::new(status, None).into()),
            Err(error) if is_json => Err(error.into()),
            _ => Err(Error::UnexpectedContentType(
                kind.map(|text| self.incoming.redacted(&text)),
            )),
        }
    }
}

impl StreamableHttpClient for GuardedHttp {
    type Error = OutgoingError;

    async fn post_message(
        &self,
        _uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Error> {
        self.until_closed(self.post(message, session_id, headers)).await
    }

    async fn delete_session(
        &self,
        _uri: Arc<str>,
        session_id: Arc<str>,
        _auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Error> {
        let plain = Plain {
            method: Method::DELETE,
            headers: headers_of(Some(&session_id), headers)?,
            body: None,
        };
        // A server may refuse it, and then ends the session when it wants.
        self.send(plain).await.map(drop)
    }

    async fn get_stream(
        &self,
        _uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Error> {
        let mut headers = headers_of(session_id.as_deref(), headers)?;
        if let Some(id) = last_event_id {
            headers.insert(LAST_EVENT_ID, value(&id)?);
        }
        let plain = Plain {
            method: Method::GET,
            headers,
            body: None,
        };
        let response = self.until_closed(self.send(plain)).await?;
        match (response.status(), media_type(&response).as_deref()) {
            (200, Some("text/event-stream")) => Ok(self.events(response.into_stream(), None)),
            // The stream is optional, and a server says so in different ways.
            _ => Err(Error::ServerDoesNotSupportSse),
        }
    }
}

/// Returns a body that was read, as a stream whose last event is complete.
fn whole(body: &Bytes) -> impl Stream<Item = Result<Bytes, OutgoingError>> + Send + use<> {
    stream::iter([body.clone(), Bytes::from_static(b"\n\n")].map(Ok))
}

/// Returns the headers of the protocol.
fn headers_of(session_id: Option<&str>, headers: HashMap<HeaderName, HeaderValue>) -> Result<HeaderMap, Error> {
    let mut all: HeaderMap = headers.into_iter().collect();
    all.insert("accept", ACCEPTED_TYPES);
    if let Some(id) = session_id {
        all.insert(SESSION_ID, value(id)?);
    }
    Ok(all)
}

fn value(text: &str) -> Result<HeaderValue, Error> {
    HeaderValue::from_str(text)
        .map_err(|_| Error::UnexpectedServerResponse("an id that can't be sent in a header".into()))
}

fn text(headers: &HeaderMap, name: &HeaderName) -> Option<String> {
    headers.get(name)?.to_str().ok().map(str::to_owned)
}

/// Returns the media type in lower case, without parameters.
fn media_type(response: &OutgoingResponse) -> Option<String> {
    let value = response.headers().get("content-type")?.to_str().ok()?;
    let essence = value.split(';').next()?;
    Some(essence.trim().to_ascii_lowercase())
}
