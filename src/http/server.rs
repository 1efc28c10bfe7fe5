//! Accepts connections and serves them until shutdown. Limits their number, and the time of their
//! handshakes.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accepted::Accepted;
use super::codes::ProblemCode;
use super::http1::{self, RESERVE_HEADER_TIMEOUT};
use super::http2::{self, StreamTasks};
use super::pace::PacedStream;
use super::peer::Peer;
use super::problem::Problem;
use super::router::Interface;
use super::tls::{Opened, Tls, is_http2};

/// How long to wait when the process has no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The number of connections beyond the limit. Each responds to one probe and to nothing else.
const RESERVE: usize = 32;
/// How long the handshake of TLS may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Serves requests until `shutdown`, then waits for open requests. Dropping the future closes their
/// connections.
///
/// Connections beyond the limit belong to the reserve. Connections beyond the reserve wait in the
/// listener's queue. With TLS, clients may select HTTP/2; otherwise there is HTTP/1.1 only.
pub async fn serve(listener: TcpListener, interface: Interface, shutdown: CancellationToken) {
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let _cut_on_drop = cut.clone().drop_guard();
    let slots = interface.max_connections.min(Semaphore::MAX_PERMITS - RESERVE);
    let server = Server {
        interface,
        slots: Arc::new(Semaphore::new(slots)),
        all: Arc::new(Semaphore::new(slots + RESERVE)),
        requests: Arc::new(Semaphore::new(slots)),
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
    /// The connections without those of the reserve.
    slots: Arc<Semaphore>,
    all: Arc<Semaphore>,
    /// The open requests over HTTP/2.
    requests: Arc<Semaphore>,
    shutdown: CancellationToken,
    cut: CancellationToken,
}

/// The permit of a connection. A connection of the reserve has none.
type Slot = Option<OwnedSemaphorePermit>;

impl Server {
    async fn accept_all(&self, listener: &TcpListener, connections: &TaskTracker) {
        loop {
            let accepted = tokio::select! {
                () = self.shutdown.cancelled() => return,
                accepted = accept(listener, &self.all) => accepted,
            };
            match accepted {
                Ok((stream, counted)) => {
                    let slot = Arc::clone(&self.slots).try_acquire_owned().ok();
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
        let accepted = Accepted {
            router: self.interface.router.clone(),
            api: Arc::clone(&self.interface.api),
            is_reserved: slot.is_none(),
            peer: stream.peer_addr().ok().map(|address| Peer(address.ip().to_canonical())),
            caller: None,
            requests: Arc::clone(&self.requests),
            shutdown: self.shutdown.clone(),
        };
        // Boxed, since each wrapper of a future would add its size to every open connection.
        let serving: BoxFuture<'static, ()> = match self.interface.tls.clone() {
            None => {
                let stream = PacedStream::new(stream, accepted.patience());
                Box::pin(http1::serve(accepted, stream))
            }
            Some(tls) => {
                let tasks = StreamTasks {
                    tasks: connections.clone(),
                    cut: self.cut.child_token(),
                };
                Box::pin(serve_tls(accepted, stream, tls, tasks))
            }
        };
        let metrics = self.interface.api.runs.metrics.as_ref();
        let open = metrics.filter(|_| self.interface.is_of_callers);
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

/// Performs the handshake of TLS, and serves the protocol that the client selects. A shutdown ends
/// a handshake, since it carries no request yet.
async fn serve_tls(mut accepted: Accepted, stream: TcpStream, tls: Arc<Tls>, tasks: StreamTasks) {
    let limit = if accepted.is_reserved {
        RESERVE_HEADER_TIMEOUT
    } else {
        HANDSHAKE_TIMEOUT
    };
    let opened = tokio::select! {
        opened = timeout(limit, tls.open(stream, accepted.patience())) => opened,
        () = accepted.shutdown.cancelled() => return,
    };
    let stream = match opened {
        Ok(Ok(Opened::Tls(stream))) => stream,
        Ok(Ok(Opened::PlainHttp(stream))) => {
            let words = "this port speaks TLS, and the request is plain HTTP: use an address that begins with https://";
            let problem = Problem::new(ProblemCode::MalformedRequest, words);
            return http1::refuse(stream, problem, &accepted.api).await;
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
    accepted.caller = tls.caller(&stream);
    if is_http2(&stream) {
        Box::pin(http2::serve(accepted, stream, tasks)).await;
    } else {
        Box::pin(http1::serve(accepted, stream)).await;
    }
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
