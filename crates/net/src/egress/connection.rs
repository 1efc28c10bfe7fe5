//! One connection of a command: HTTP/1.1 as a proxy speaks it.

use std::convert::Infallible;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::TcpStream;

use super::body::{ProxyBody, text};
use super::exchange::exchange;
use super::gateway::Gateway;
use super::refusal::Refusal;
use crate::outgoing::Target;

/// The most bytes of the headers of a request.
const MAX_HEAD_BYTES: usize = 64 << 10;
const MAX_HEADERS: usize = 100;

/// The tunnel that follows the response to `CONNECT`.
#[derive(Debug)]
struct Tunnel {
    client: OnUpgrade,
    to: TunnelEnd,
}

#[derive(Debug)]
enum TunnelEnd {
    /// The host: the proxy passes on bytes that it can't read.
    Host(TcpStream),
    /// The proxy itself, in the name of a host that has a secret.
    Proxy(Target),
}

/// Serves a connection until it ends.
pub(super) async fn serve<S>(gateway: Arc<Gateway>, stream: S)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let tunnel = Arc::new(Mutex::new(None));
    let service = service_fn(|request| {
        let (gateway, tunnel) = (Arc::clone(&gateway), Arc::clone(&tunnel));
        async move { Ok::<_, Infallible>(respond(&gateway, request, &tunnel).await) }
    });
    let served = server(&gateway)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    let tunnel = tunnel.lock().take();
    // The command notices on its side if this breaks.
    if let (Ok(()), Some(Tunnel { client, to })) = (served, tunnel)
        && let Ok(client) = client.await
    {
        let mut client = TokioIo::new(client);
        match to {
            TunnelEnd::Host(mut server) => drop(copy_bidirectional(&mut client, &mut server).await),
            TunnelEnd::Proxy(target) => serve_intercepted(&gateway, client, &target).await,
        }
    }
}

/// Serves the requests of a command inside TLS.
async fn serve_intercepted<S>(gateway: &Gateway, stream: S, target: &Target)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Some(interceptor) = gateway.interceptor.as_ref() else {
        return;
    };
    let Some(stream) = interceptor.accept(target, stream).await else {
        return;
    };
    let service = service_fn(async |request| {
        let responded = interceptor.forward(&gateway.connector, target, request).await;
        Ok::<_, Infallible>(responded.unwrap_or_else(|refusal| report(&refusal)))
    });
    let _ = server(gateway).serve_connection(TokioIo::new(stream), service).await;
}

/// Returns the response to a request that was refused.
fn report(refusal: &Refusal) -> Response<ProxyBody> {
    let error = refusal as &dyn std::error::Error;
    tracing::info!(error, "the proxy refused a request of a command");
    refusal.response()
}

fn server(gateway: &Gateway) -> http1::Builder {
    let mut server = http1::Builder::new();
    server
        .timer(TokioTimer::new())
        .header_read_timeout(gateway.limits.idle_timeout)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS);
    server
}

async fn respond(gateway: &Gateway, request: Request<Incoming>, tunnel: &Mutex<Option<Tunnel>>) -> Response<ProxyBody> {
    let responded = if request.method() == Method::CONNECT {
        open(gateway, request, tunnel).await
    } else {
        forward(gateway, request).await
    };
    responded.unwrap_or_else(|refusal| report(&refusal))
}

/// Connects to the host of a `CONNECT`, and prepares the tunnel.
async fn open(
    gateway: &Gateway,
    request: Request<Incoming>,
    tunnel: &Mutex<Option<Tunnel>>,
) -> Result<Response<ProxyBody>, Refusal> {
    let authority = request.uri().authority().filter(|name| name.port().is_some());
    let authority = authority.ok_or(Refusal::NotForProxy)?;
    let target = gateway.connector.target(&format!("https://{authority}/"))?;
    let to = if gateway
        .interceptor
        .as_ref()
        .is_some_and(|interceptor| interceptor.is_for(&target))
    {
        TunnelEnd::Proxy(target)
    } else {
        TunnelEnd::Host(gateway.connector.connect(&target).await?)
    };
    let client = hyper::upgrade::on(request);
    *tunnel.lock() = Some(Tunnel { client, to });
    Ok(Response::new(text(String::new())))
}

async fn forward(gateway: &Gateway, request: Request<Incoming>) -> Result<Response<ProxyBody>, Refusal> {
    let target = plain_target(gateway, &request)?;
    let server = gateway.connector.connect(&target).await?;
    Ok(exchange(server, &target, request).await?)
}

/// Returns the checked URL of a request that is not encrypted.
fn plain_target(gateway: &Gateway, request: &Request<Incoming>) -> Result<Target, Refusal> {
    let uri = request.uri();
    if uri.scheme_str() != Some("http") || uri.authority().is_none() {
        return Err(Refusal::NotForProxy);
    }
    Ok(gateway.connector.target(&uri.to_string())?)
}
