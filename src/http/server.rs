//! Accepts connections and serves them until shutdown. Limits their time, their headers and their
//! number.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use super::connection::{Connection, Exchange, ExchangeBody, Patience};
use super::guards::Reserved;
use super::observe::respond_unparsed;
use super::router::Interface;
use super::state::Api;
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
/// How long the headers of a request may take on a connection of the reserve.
const RESERVE_HEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves requests until `shutdown`, then waits for open requests. Dropping the future closes their
/// connections.
///
/// Connections beyond the limit belong to the reserve. Connections beyond the reserve wait in the
/// listener's queue. HTTP/1.1 only.
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
                    let connection = self.serve_connection(stream, slot);
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

    fn serve_connection(&self, stream: TcpStream, slot: Slot) -> impl Future<Output = ()> + Send + use<> {
        // Tokens must be sent at once. A failure to set this option only adds latency.
        let _ = stream.set_nodelay(true);
        let api = Arc::clone(&self.interface.api);
        let exchange = Exchange::default();
        let patience = Patience {
            window: api.limits.request_timeout,
            least_rate: api.limits.min_transfer_rate,
        };
        let io = Connection::new(stream, exchange.clone(), patience);
        let (router, in_exchange, is_reserved) = (self.interface.router.clone(), exchange.clone(), slot.is_none());
        let service = service_fn(move |mut request: hyper::Request<Incoming>| {
            in_exchange.begin();
            if is_reserved {
                request.extensions_mut().insert(Reserved);
            }
            let (mut router, exchange) = (router.clone(), in_exchange.clone());
            Box::pin(async move {
                let response = router.call(request).await?;
                Ok::<_, Infallible>(response.map(|body| ExchangeBody::new(body, exchange)))
            })
        });
        let mut connection = builder(&api, is_reserved).serve_connection(TokioIo::new(io), service);
        let (shutdown, cut) = (self.shutdown.clone(), self.cut.clone());
        // Boxed, since each wrapper of a future would add its size to every open connection.
        let serving = Box::pin(async move {
            let ended = tokio::select! {
                ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => ended,
                () = shutdown.cancelled() => {
                    std::pin::Pin::new(&mut connection).graceful_shutdown();
                    poll_fn(|cx| connection.poll_without_shutdown(cx)).await
                }
            };
            Box::pin(close(connection.into_parts(), ended, &exchange, &api)).await;
        });
        let open = self
            .interface
            .api
            .runs
            .metrics
            .as_ref()
            .filter(|_| self.interface.is_of_callers);
        let open = open.map(|metrics| metrics.http.connection_opened());
        async move {
            let _held = (slot, open);
            tokio::select! {
                () = serving => (),
                () = cut.cancelled() => (),
            }
        }
    }
}

/// Closes a connection. Responds first if it broke off in a request that could not be read.
async fn close<S>(
    parts: http1::Parts<TokioIo<Connection>, S>,
    ended: hyper::Result<()>,
    exchange: &Exchange,
    api: &Api,
) {
    let mut io = parts.io.into_inner();
    if let Err(error) = ended {
        tracing::debug!(error = error.to_string(), "connection broke off");
        let problem = parse_problem(&error, &parts.read_buf, &api.limits);
        let Some(problem) = problem.filter(|_| exchange.is_idle()) else {
            return;
        };
        let response = respond_unparsed(problem, &api.runs);
        exchange.begin();
        let bytes = response_bytes(response, api.runs.clock.now()).await;
        // If the peer is gone, the response is lost.
        let _ = io.write_all(&bytes).await;
    }
    let _ = io.shutdown().await;
}

fn builder(api: &Api, is_reserved: bool) -> http1::Builder {
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
