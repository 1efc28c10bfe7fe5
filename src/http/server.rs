//! Accepts connections and serves them until it is told to stop. Every connection is bounded in time, in headers and in number.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Connection, Patience};
use super::limits::HttpLimits;

/// How long to wait when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The connection bears more than a request may have, so that a request a little too large is answered with a problem.
const HEAD_SLACK: usize = 16 * 1024;
/// See `HEAD_SLACK`; one more is refused without a problem.
const MAX_HEADERS: usize = 256;

/// Serves requests until `shutdown`, then lets open ones end for up to `grace` and cuts the rest.
///
/// Connections beyond the limit wait in the listener's queue until another one ends. HTTP/1.1 only.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    limits: &HttpLimits,
    shutdown: CancellationToken,
    grace: Duration,
) -> io::Result<()> {
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    // Cuts the connections too when this future is dropped.
    let cut_on_drop = cut.clone().drop_guard();
    let server = Server {
        router,
        builder: builder(limits),
        patience: Patience {
            window: limits.request_timeout,
            least_rate: limits.min_transfer_rate,
        },
        shutdown,
        cut,
    };
    server.accept_all(&listener, &connections, limits.max_connections).await;
    // New clients get a refusal at once instead of waiting in the queue.
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!(
            connections = connections.len(),
            "connections cut after the grace period"
        );
        drop(cut_on_drop);
        connections.wait().await;
    }
    Ok(())
}

struct Server {
    router: Router,
    builder: http1::Builder,
    patience: Patience,
    shutdown: CancellationToken,
    cut: CancellationToken,
}

impl Server {
    async fn accept_all(&self, listener: &TcpListener, connections: &TaskTracker, max_connections: usize) {
        let slots = Arc::new(Semaphore::new(max_connections.min(Semaphore::MAX_PERMITS)));
        loop {
            let accepted = tokio::select! {
                () = self.shutdown.cancelled() => return,
                accepted = accept(listener, &slots) => accepted,
            };
            match accepted {
                Ok((stream, slot)) => {
                    let connection = self.serve_connection(stream);
                    connections.spawn(async move {
                        connection.await;
                        drop(slot);
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

    fn serve_connection(&self, stream: TcpStream) -> impl Future<Output = ()> + Send + use<> {
        // Tokens must leave at once; failing to say so costs latency and nothing else.
        let _ = stream.set_nodelay(true);
        let io = TokioIo::new(Connection::new(stream, self.patience));
        let connection = self
            .builder
            .serve_connection(io, TowerToHyperService::new(self.router.clone()));
        let (shutdown, cut) = (self.shutdown.clone(), self.cut.clone());
        async move {
            let mut connection = std::pin::pin!(connection);
            let ended = tokio::select! {
                ended = connection.as_mut() => ended,
                () = shutdown.cancelled() => {
                    connection.as_mut().graceful_shutdown();
                    tokio::select! {
                        ended = connection.as_mut() => ended,
                        () = cut.cancelled() => return,
                    }
                }
                () = cut.cancelled() => return,
            };
            if let Err(error) = ended {
                tracing::debug!(error = error.to_string(), "connection broke off");
            }
        }
    }
}

fn builder(limits: &HttpLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_headers(MAX_HEADERS)
        .max_buf_size(limits.max_header_bytes.saturating_mul(2).saturating_add(HEAD_SLACK));
    builder
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> io::Result<(TcpStream, Option<tokio::sync::OwnedSemaphorePermit>)> {
    // The semaphore is never closed; without a permit a connection would merely go uncounted.
    let slot = Arc::clone(slots).acquire_owned().await.ok();
    let (stream, _) = listener.accept().await?;
    Ok((stream, slot))
}

fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}
