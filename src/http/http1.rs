//! Serves the connections of HTTP/1.1.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};

use super::accepted::Accepted;
use super::connection::{Connection, Exchange, ExchangeBody};
use super::limits::HttpLimits;
use super::observe::respond_unparsed;
use super::problem::Problem;
use super::state::Api;
use super::unparsed::{parse_problem, response_bytes};

/// How many bytes a connection reads beyond the limit of headers. Thus a layer, which knows the
/// path, rejects most requests with large headers before hyper does.
pub(super) const HEAD_SLACK: usize = 16 * 1024;
/// See `HEAD_SLACK`.
const MAX_HEADERS: usize = 256;
/// How long the headers of a request may take on a connection of the reserve.
pub(super) const RESERVE_HEADER_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves a connection until it ends. The future holds nothing twice, since every open connection
/// has one.
pub(super) fn serve<S>(accepted: Accepted, stream: S) -> impl Future<Output = ()> + Send
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (api, shutdown, is_reserved) = (
        Arc::clone(&accepted.api),
        accepted.shutdown.clone(),
        accepted.is_reserved,
    );
    let exchange = Exchange::default();
    let io = Connection::new(stream, exchange.clone());
    let in_exchange = exchange.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        in_exchange.begin();
        let (response, exchange) = (accepted.respond(request, is_reserved), in_exchange.clone());
        Box::pin(async move {
            let response = response.await?;
            Ok::<_, Infallible>(response.map(|body| ExchangeBody::new(body, exchange)))
        })
    });
    let mut connection = builder(&api.limits, is_reserved).serve_connection(TokioIo::new(io), service);
    async move {
        let ended = tokio::select! {
            ended = poll_fn(|cx| connection.poll_without_shutdown(cx)) => ended,
            () = shutdown.cancelled() => {
                std::pin::Pin::new(&mut connection).graceful_shutdown();
                poll_fn(|cx| connection.poll_without_shutdown(cx)).await
            }
        };
        Box::pin(close(connection.into_parts(), ended, &exchange, &api)).await;
    }
}

/// Responds with a problem before any request was read, and closes the connection.
pub(super) async fn refuse<S>(stream: S, problem: Problem, api: &Api)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let exchange = Exchange::default();
    let mut io = Connection::new(stream, exchange.clone());
    respond_raw(&mut io, problem, &exchange, api).await;
    let _ = io.shutdown().await;
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

fn builder(limits: &HttpLimits, is_reserved: bool) -> http1::Builder {
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
