//! Serves the connections of HTTP/2, and bounds what a peer can make the process do and store.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::accepted::Accepted;
use super::http1::{HEAD_SLACK, RESERVE_HEADER_TIMEOUT};
use super::limits::HttpLimits;
use super::streams::{StreamBody, Streams};

/// The requests that a connection may have open at once.
const MAX_STREAMS: u32 = 100;
/// The requests that a peer may reset before they are read (CVE-2023-44487).
const MAX_RESETS: usize = 20;
/// The requests that the service may reset because of errors of the peer.
const MAX_ERROR_RESETS: usize = 100;
/// The bytes of bodies that a peer may send before they are read.
const WINDOW: u32 = 256 * 1024;
/// The bytes of a response that are taken before they can be sent.
const SEND_BUFFER: usize = 64 * 1024;
/// How long a peer may take to close a connection without requests.
const LINGER: Duration = Duration::from_secs(2);

/// Executes the requests of a connection.
#[derive(Debug, Clone)]
pub(super) struct StreamTasks {
    pub(super) tasks: TaskTracker,
    /// Ends the requests.
    pub(super) cut: CancellationToken,
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

/// Serves a connection until it ends. Each request has a task of its own, which ends with the
/// connection.
pub(super) async fn serve<S>(accepted: Accepted, stream: S, tasks: StreamTasks)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (api, patience, is_reserved) = (Arc::clone(&accepted.api), accepted.patience(), accepted.is_reserved);
    let shutdown = accepted.shutdown.clone();
    let _cut_on_drop = tasks.cut.clone().drop_guard();
    let streams = Arc::new(Streams::default());
    let begun = Arc::clone(&streams);
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        let permit = accepted.permit();
        add_host(&mut request);
        let response = accepted.respond(request, permit.is_none());
        let stream = begun.begin(permit);
        Box::pin(async move {
            let response = response.await?;
            Ok::<_, Infallible>(response.map(|body| StreamBody::new(body, stream)))
        })
    });
    let builder = builder(tasks, &api.limits, is_reserved);
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
    // A peer may not acknowledge the end of the connection.
    let abandoned = async {
        if is_reserved {
            sleep(LINGER).await;
        } else {
            streams.until_unused(LINGER).await;
        }
    };
    tokio::select! {
        ended = connection.as_mut() => log_end(ended),
        () = streams.until_too_slow(patience) => (),
        () = abandoned => (),
    }
}

fn builder(tasks: StreamTasks, limits: &HttpLimits, is_reserved: bool) -> http2::Builder<StreamTasks> {
    let header_bytes = limits.max_header_bytes.saturating_add(HEAD_SLACK);
    let mut builder = http2::Builder::new(tasks);
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(if is_reserved { 1 } else { MAX_STREAMS })
        .max_header_list_size(u32::try_from(header_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(MAX_RESETS)
        .max_local_error_reset_streams(MAX_ERROR_RESETS)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(SEND_BUFFER);
    builder
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
