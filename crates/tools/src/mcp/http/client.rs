//! The requests of streamable HTTP, through the guard.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream, Stream, StreamExt as _, TryStreamExt as _};
use rmcp::model::{
    CallToolRequestMethod, ClientJsonRpcMessage, ConstString as _, DiscoverRequestMethod, ErrorCode, ErrorData,
    JsonRpcMessage, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::time::timeout;

use super::body::{Counted, events};
use super::credentials::Credentials;
use super::events;
use super::text::is_of_events;
use crate::mcp::incoming::{Incoming, message};
use crate::mcp::requests::Awaited;
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
/// How long the first call waits for the stream of the server's own messages. Some servers send the
/// head of the stream with its first event.
const STREAM_TIMEOUT: Duration = Duration::from_secs(1);

type Error = StreamableHttpError<OutgoingError>;

/// Sends the messages of one connection to a server.
///
/// The library does not end a request of the handshake when its transport is dropped. So each
/// connection has a token that ends all of its requests.
#[derive(Debug, Clone)]
pub(in crate::mcp) struct GuardedHttp {
    server: Arc<HttpServer>,
    incoming: Incoming,
}

/// A server, as all of its connections reach it.
#[derive(Debug)]
pub(super) struct HttpServer {
    pub(super) client: OutgoingClient,
    pub(super) target: Target,
    pub(super) credentials: Credentials,
    pub(super) max_response_bytes: usize,
}

impl GuardedHttp {
    /// Makes the client of a new connection.
    pub(super) fn new(server: &Arc<HttpServer>, incoming: Incoming) -> Self {
        let server = Arc::clone(server);
        Self { server, incoming }
    }

    /// Waits for a request, unless the connection closes before.
    async fn until_closed<T>(&self, request: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        let done = self.incoming.requests.closed.run_until_cancelled(request).await;
        done.unwrap_or(Err(Error::TransportChannelClosed))
    }

    /// Returns the events of a body until the connection closes. The body is the response to a
    /// request, or else a stream without end.
    fn events(
        &self,
        body: impl Stream<Item = Result<Bytes, OutgoingError>> + Send + 'static,
        request: Option<Awaited>,
    ) -> BoxStream<'static, Result<Sse, SseError>> {
        let incoming = self.incoming.clone();
        let closed = incoming.requests.closed.clone();
        let counted = if request.is_some() { Counted::All } else { Counted::Each };
        let events = events(body, self.server.max_response_bytes, counted);
        let read = events.and_then(move |event| {
            let (incoming, request) = (incoming.clone(), request.clone());
            async move { events::read(&incoming, request, event).await }
        });
        let events = read
            .map_ok(|events| stream::iter(events.into_iter().map(Ok::<_, SseError>)))
            .try_flatten();
        events.take_until(closed.cancelled_owned()).boxed()
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

    /// Waits until the server can send its own messages, such as questions during a call. Servers
    /// drop a question that they can't send.
    async fn until_listening(&self) {
        let listening = &self.incoming.requests.listening;
        let _ = timeout(STREAM_TIMEOUT, listening.cancelled()).await;
        // The next calls do not wait again.
        listening.cancel();
    }

    /// Sends a request. If the server refuses the access token, sends it again with a new one.
    ///
    /// A server closes a connection that has been unused for a while, possibly at the moment of a
    /// request. So if the connection breaks, a request that may be repeated is sent once more.
    async fn send(
        &self,
        method: Method,
        headers: HeaderMap,
        body: Option<Bytes>,
        mut may_repeat: bool,
    ) -> Result<OutgoingResponse, Error> {
        let HttpServer {
            client,
            target,
            credentials,
            ..
        } = &*self.server;
        let mut is_first = true;
        loop {
            let sent_credentials = credentials.headers().await.map_err(Error::Client)?;
            let mut origin_headers = headers.clone();
            origin_headers.extend(sent_credentials.clone());
            let response = client.send(OutgoingRequest {
                method: method.clone(),
                target: target.clone(),
                headers: HeaderMap::new(),
                origin_headers,
                body: body.clone(),
                max_redirects: 0,
            });
            let response = match response.await {
                Err(OutgoingError::Broken(_)) if may_repeat => {
                    may_repeat = false;
                    continue;
                }
                response => response.map_err(Error::Client)?,
            };
            let status = response.status();
            if status == 401 && is_first && credentials.renew(&sent_credentials).await {
                is_first = false;
                continue;
            }
            if matches!(status, 401 | 403) {
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
        let body = Some(serde_json::to_vec(&message)?.into());
        let is_call = is_call(&message);
        if is_call && has_session {
            self.until_listening().await;
        }
        let response = self.send(Method::POST, headers, body, !is_call).await?;
        let status = response.status();
        let JsonRpcMessage::Request(request) = &message else {
            return match status {
                404 if has_session => Err(Error::SessionExpired),
                200..300 => Ok(StreamableHttpPostResponse::Accepted),
                // An error of the protocol, for which no caller waits.
                _ if media_type(&response).as_deref() == Some("application/json") => {
                    Ok(StreamableHttpPostResponse::Accepted)
                }
                status => Err(HttpStatusError::new(status, None).into()),
            };
        };
        let request = Awaited::of(request);
        match status {
            404 if has_session => Err(Error::SessionExpired),
            200..300 if media_type(&response).as_deref() == Some("text/event-stream") => {
                let session_id = text(response.headers(), &SESSION_ID);
                let events = self.events(response.into_stream(), Some(request));
                Ok(StreamableHttpPostResponse::Sse(events, session_id))
            }
            _ => self.reply(request, response, has_session).await,
        }
    }

    /// Reads the response to a request, which is not a stream by its type.
    async fn reply(
        &self,
        request: Awaited,
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
        let read = self.incoming.read(json, Some(request.clone()), |sent| {
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
            let requests = &self.incoming.requests;
            if is_unread && requests.may_repeat(&request.id) {
                return Err(Error::SessionExpired);
            }
            if (400..500).contains(&status) {
                requests.outdated.cancel();
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
                let refused = ServerJsonRpcMessage::error(error, Some(request.id));
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
        let headers = headers_of(Some(&session_id), headers)?;
        // A server may refuse it, and then ends the session when it wants.
        self.send(Method::DELETE, headers, None, true).await.map(drop)
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
        let response = self.until_closed(self.send(Method::GET, headers, None, true)).await;
        self.incoming.requests.listening.cancel();
        let response = response?;
        match (response.status(), media_type(&response).as_deref()) {
            (200, Some("text/event-stream")) => Ok(self.events(response.into_stream(), None)),
            // The stream is optional, and a server says so in different ways.
            _ => Err(Error::ServerDoesNotSupportSse),
        }
    }
}

/// Returns whether a message calls a tool, which may have effects.
fn is_call(message: &ClientJsonRpcMessage) -> bool {
    match message {
        JsonRpcMessage::Request(request) => request.request.method() == CallToolRequestMethod::VALUE,
        _ => false,
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
