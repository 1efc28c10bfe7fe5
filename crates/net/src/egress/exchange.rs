//! Forwards a request over a connection of its own, and passes on the response as it comes.

use futures_util::future::{Either, select};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, Uri, Version};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::body::{DrivenBody, ProxyBody};
use crate::outgoing::{OutgoingError, Target};

/// The headers of one connection, which its next one does not get.
const OF_CONNECTION: [HeaderName; 9] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Sends a request to its host and returns the response. The header `Host` names the host that was
/// checked. The command's own value of this header is ignored.
pub(super) async fn exchange<S>(
    stream: S,
    target: &Target,
    mut request: Request<Incoming>,
) -> Result<Response<ProxyBody>, OutgoingError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let broken = |error: hyper::Error| OutgoingError::Broken(error.into());
    let unusable = |()| OutgoingError::Broken("its address can't be written".into());
    let url = target.url();
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    *request.uri_mut() = path.parse::<Uri>().map_err(|_| ()).map_err(unusable)?;
    *request.version_mut() = Version::HTTP_11;
    let authority = &url[url::Position::BeforeHost..url::Position::AfterPort];
    let host = HeaderValue::from_str(authority).map_err(|_| ()).map_err(unusable)?;
    let headers = request.headers_mut();
    strip(headers);
    // The proxy has asked for the body by now.
    headers.remove(header::EXPECT);
    headers.insert(header::HOST, host);

    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let sending = Box::pin(sender.send_request(request));
    let (response, connection) = match select(sending, Box::pin(connection)).await {
        Either::Left((response, connection)) => (response, Some(connection as _)),
        Either::Right((_, sending)) => (sending.await, None),
    };
    let (mut head, body) = response.map_err(broken)?.into_parts();
    strip(&mut head.headers);
    let body = DrivenBody { body, connection };
    Ok(Response::from_parts(head, body.boxed_unsync()))
}

/// Removes the headers of a connection, and the headers that `Connection` names.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}
