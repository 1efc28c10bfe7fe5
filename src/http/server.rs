//! Accepts connections and serves them until shutdown. Limits their time, their headers and their
//! number.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, header};
use axum::routing::future::RouteFuture;
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use super::codes::ProblemCode;
use super::connection::{Connection, Exchange, ExchangeBody};
use super::guards::Reserved;
use super::limits::HttpLimits;
use super::observe::respond_unparsed;
use super::pace::{PacedStream, Patience};
use super::problem::Problem;
use super::router::Interface;
use super::state::Api;
use super::streams::{StreamBody, Streams};
use super::tls::{Opened, Tls, is_http2};
use super::tls_settings::CertifiedCaller;
use super::unparsed::{parse_problem, response_bytes};

/// How long to wait when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// How many bytes a connection reads beyond the limit of headers. Thus a layer, which knows the
/// path, rejects most requests with large headers before hyper does.
const HEAD_SLACK: usize = 16 * 1024;
/// See `HEAD_SLACK`.
const MAX_HEADERS: usize = 256;
/// The number of connections beyond the limit. Each responds to one probe and to nothing else.
const RESERVE: usize = 32;
/// How long the headers of a request may take on a connection of the reserve, and the handshake of
/// TLS before them.
const RESERVE_HEADER_TIMEOUT: Duration = Duration::from_secs(1);
/// How long the handshake of TLS may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The requests that an HTTP/2 connection may have open at once.
const MAX_STREAMS: u32 = 100;
/// The requests that a peer may reset before they are read (CVE-2023-44487).
const MAX_RESETS: usize = 20;
/// The requests that the service may reset because of errors of the peer.
const MAX_ERROR_RESETS: usize = 100;
/// The bytes of bodies that a peer of HTTP/2 may send before they are read.
const WINDOW: u32 = 256 * 1024;
/// The bytes of a response that HTTP/2 takes before they can be sent.
const SEND_BUFFER: usize = 64 * 1024;
/// How long a peer of HTTP/2 may take to close a connection without requests.
const LINGER: Duration = Duration::from_secs(2);

/// Serves requests until `shutdown`, then waits for open requests. Dropping the future closes their
/// connections.
///
/// Connections beyond the limit belong to the reserve. Connections beyond the reserve wait in the
/// listener's queue. With TLS, clients may select HTTP/2; otherwise there is HTTP/1.1 only.
pub async fn serve(listener: TcpListener, interface: Interface, shutdown: CancellationToken) {
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let _cut_on_drop = cut.clone().drop_guard();
    let server = Server {
        interface,
        shutdown,
        cut,
    };
    server.accept_all(&listener, &connections).await;
    // New clients get a refusal at once instead of waiting in the queue.
    drop(listener);
    connections.close();
    connections.wait().await;
}

struct Server {
    interface: Interface,
    shutdown: CancellationToken,
    cut: CancellationToken,
}

/// The permit of a connection. A connection of the reserve has none.
type Slot = Option<OwnedSemaphorePermit>;

impl Server {
    async fn accept_all(&self, listener: &TcpListener, connections: &TaskTracker) {
        let slots = self.interface.max_connections;
        let slots = slots.min(Semaphore::MAX_PERMITS - RESERVE);
        let all = Arc::new(Semaphore::new(slots + RESERVE));
        let slots = Arc::new(Semaphore::new(slots));
        loop {
            let accepted = tokio::select! {
                () = self.shutdown.cancelled() => return,
                accepted = accept(listener, &all) => accepted,
            };
            match accepted {
                Ok((stream, counted)) => {
                    let slot = Arc::clone(&slots).try_acquire_owned().ok();
                    let connection = self.serve_connection(stream, slot, connections);
                    connections.spawn(async move {
                        connection.await;
                        drop(counted);
                    });
                }
                Err(error) if is_of_one_connection(&error) => (),
                Err(error) => {
                    tracing::error!(error = error.to_string(), "connection can't be accepted");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn serve_connection(
        &self,
        stream: TcpStream,
        slot: Slot,
        connections: &TaskTracker,
    ) -> impl Future<Output = ()> + Send + use<> {
        // Tokens must be sent at once. A failure to set this option only adds latency.
        let _ = stream.set_nodelay(true);
        let connection = Accepted {
            router: self.interface.router.clone(),
            api: Arc::clone(&self.interface.api),
            is_reserved: slot.is_none(),
            caller: None,
            shutdown: self.shutdown.clone(),
        };
        // Boxed, since each wrapper of a future would add its size to every open connection.
        let serving: BoxFuture<'static, ()> = match self.interface.tls.clone() {
            None => {
                let stream = PacedStream::new(stream, connection.patience());
                Box::pin(connection.serve_http1(stream))
            }
            Some(tls) => {
                let tasks = StreamTasks {
                    tasks: connections.clone(),
                    cut: self.cut.child_token(),
                };
                Box::pin(connection.serve_tls(stream, tls, tasks))
            }
        };
        let open = self
            .interface
            .api
            .runs
            .metrics
            .as_ref()
            .filter(|_| self.interface.is_of_callers);
        let open = open.map(|metrics| metrics.http.connection_opened());
        let cut = self.cut.clone();
        async move {
            let _held = (slot, open);
            tokio::select! {
                () = serving => (),
                () = cut.cancelled() => (),
            }
        }
    }
}

/// What a connection needs to serve requests.
struct Accepted {
    router: Router,
    api: Arc<Api>,
    /// Whether the connection is one of the reserve.
    is_reserved: bool,
    /// The caller that the client certificate identifies.
    caller: Option<CertifiedCaller>,
    shutdown: CancellationToken,
}

impl Accepted {
    fn patience(&self) -> Patience {
        Patience {
            window: self.api.limits.request_timeout,
            least_rate: self.api.limits.min_transfer_rate,
        }
    }

    /// Performs the handshake of TLS, and serves the protocol that the client selects.
    async fn serve_tls(mut self, stream: TcpStream, tls: Arc<Tls>, tasks: StreamTasks) {
        let limit = if self.is_reserved {
            RESERVE_HEADER_TIMEOUT
        } else {
            HANDSHAKE_TIMEOUT
        };
        let stream = match timeout(limit, tls.open(stream, self.patience())).await {
            Ok(Ok(Opened::Tls(stream))) => stream,
            Ok(Ok(Opened::PlainHttp(stream))) => {
                let words = "this port speaks TLS, and the request is plain HTTP: use an address with https://";
                let problem = Problem::new(ProblemCode::MalformedRequest, words);
                let exchange = Exchange::default();
                let mut io = Connection::new(stream, exchange.clone());
                respond_raw(&mut io, problem, &exchange, &self.api).await;
                let _ = io.shutdown().await;
                return;
            }
            Ok(Err(error)) => {
                tracing::debug!(error = error.to_string(), "a handshake of TLS failed");
                return;
            }
            Err(_) => {
                tracing::debug!(?limit, "a handshake of TLS took too long");
                return;
            }
        };
        self.caller = tls.caller(&stream);
        if is_http2(&stream) {
            Box::pin(self.serve_http2(stream, tasks)).await;
        } else {
            Box::pin(self.serve_http1(stream)).await;
        }
    }

    /// Serves HTTP/1.1. The future holds nothing twice, since every open connection has one.
    fn serve_http1<S>(self, stream: S) -> impl Future<Output = ()> + Send
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (api, shutdown, is_reserved) = (Arc::clone(&self.api), self.shutdown.clone(), self.is_reserved);
        let exchange = Exchange::default();
        let io = Connection::new(stream, exchange.clone());
        let in_exchange = exchange.clone();
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            in_exchange.begin();
            let (response, exchange) = (self.call(request), in_exchange.clone());
            Box::pin(async move {
                let response = response.await?;
                Ok::<_, Infallible>(response.map(|body| ExchangeBody::new(body, exchange)))
            })
        });
        let mut connection = http1_builder(&api, is_reserved).serve_connection(TokioIo::new(io), service);
        async move {
            let ended = tokio::select! {
                ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => ended,
                () = shutdown.cancelled() => {
                    Pin::new(&mut connection).graceful_shutdown();
                    poll_fn(|cx| connection.poll_without_shutdown(cx)).await
                }
            };
            Box::pin(close(connection.into_parts(), ended, &exchange, &api)).await;
        }
    }

    /// Serves HTTP/2. Each request has a task of its own, which ends with the connection.
    async fn serve_http2<S>(self, stream: S, tasks: StreamTasks)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (api, patience, is_reserved) = (Arc::clone(&self.api), self.patience(), self.is_reserved);
        let shutdown = self.shutdown.clone();
        let _cut_on_drop = tasks.cut.clone().drop_guard();
        let streams = Arc::new(Streams::default());
        let begun = Arc::clone(&streams);
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            let stream = begun.begin();
            add_host(&mut request);
            let response = self.call(request);
            Box::pin(async move {
                let response = response.await?;
                Ok::<_, Infallible>(response.map(|body| StreamBody::new(body, stream)))
            })
        });
        let builder = http2_builder(tasks, &api.limits, is_reserved);
        let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
        let unused = async {
            if is_reserved {
                sleep(RESERVE_HEADER_TIMEOUT).await;
            } else {
                streams.until_unused(api.limits.header_timeout).await;
            }
        };
        tokio::select! {
            ended = connection.as_mut() => return log_end(ended),
            () = streams.until_too_slow(patience) => return,
            () = shutdown.cancelled() => (),
            () = unused => (),
        }
        connection.as_mut().graceful_shutdown();
        tokio::select! {
            ended = connection.as_mut() => log_end(ended),
            () = streams.until_too_slow(patience) => (),
            // A peer that does not acknowledge the end of the connection.
            () = streams.until_unused(LINGER) => (),
        }
    }

    /// Responds to a request.
    fn call(&self, mut request: hyper::Request<Incoming>) -> RouteFuture<Infallible> {
        if self.is_reserved {
            request.extensions_mut().insert(Reserved);
        }
        if let Some(caller) = &self.caller {
            request.extensions_mut().insert(caller.clone());
        }
        self.router.clone().call(request)
    }
}

/// Adds the header `Host`, which `:authority` stands for in HTTP/2.
fn add_host(request: &mut hyper::Request<Incoming>) {
    let authority = request.uri().authority();
    let host = authority.and_then(|authority| HeaderValue::from_str(authority.as_str()).ok());
    if let Some(host) = host {
        request.headers_mut().insert(header::HOST, host);
    }
}

fn log_end(ended: hyper::Result<()>) {
    if let Err(error) = ended {
        tracing::debug!(error = error.to_string(), "connection broke off");
    }
}

/// Executes the requests of an HTTP/2 connection.
#[derive(Debug, Clone)]
struct StreamTasks {
    tasks: TaskTracker,
    cut: CancellationToken,
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for StreamTasks {
    fn execute(&self, request: F) {
        let (cut, request) = (self.cut.clone(), Box::pin(request));
        self.tasks.spawn(async move {
            tokio::select! {
                () = request => (),
                () = cut.cancelled() => (),
            }
        });
    }
}

/// Closes a connection. Responds first if it broke off in a request that could not be read.
async fn close<I, S>(
    parts: http1::Parts<TokioIo<Connection<I>>, S>,
    ended: hyper::Result<()>,
    exchange: &Exchange,
    api: &Api,
) where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let mut io = parts.io.into_inner();
    if let Err(error) = ended {
        tracing::debug!(error = error.to_string(), "connection broke off");
        let problem = parse_problem(&error, &parts.read_buf, &api.limits);
        let Some(problem) = problem.filter(|_| exchange.is_idle()) else {
            return;
        };
        respond_raw(&mut io, problem, exchange, api).await;
    }
    let _ = io.shutdown().await;
}

/// Writes a response to a request that hyper does not read.
async fn respond_raw<I>(io: &mut Connection<I>, problem: Problem, exchange: &Exchange, api: &Api)
where
    I: AsyncRead + AsyncWrite + Unpin,
{
    let response = respond_unparsed(problem, &api.runs);
    exchange.begin();
    let bytes = response_bytes(response, api.runs.clock.now()).await;
    // If the peer is gone, the response is lost.
    let _ = io.write_all(&bytes).await;
}

fn http1_builder(api: &Api, is_reserved: bool) -> http1::Builder {
    let limits = &api.limits;
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(limits.max_header_bytes.saturating_mul(2).saturating_add(HEAD_SLACK));
    if is_reserved {
        builder
            .keep_alive(false)
            .header_read_timeout(limits.header_timeout.min(RESERVE_HEADER_TIMEOUT));
    }
    builder
}

/// Bounds what a peer of HTTP/2 can make the process do and store.
fn http2_builder(tasks: StreamTasks, limits: &HttpLimits, is_reserved: bool) -> http2::Builder<StreamTasks> {
    let mut builder = http2::Builder::new(tasks);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(if is_reserved { 1 } else { MAX_STREAMS })
        .max_header_list_size(u32::try_from(limits.max_header_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(SEND_BUFFER);
    builder
}

async fn accept(listener: &TcpListener, all: &Arc<Semaphore>) -> io::Result<(TcpStream, Slot)> {
    // The semaphore is never closed. Without a permit, a connection would merely not be counted.
    let counted = Arc::clone(all).acquire_owned().await.ok();
    let (stream, _) = listener.accept().await?;
    Ok((stream, counted))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
