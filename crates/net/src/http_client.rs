//! The common settings of all HTTP clients: TLS, no redirects, no proxy, and large bodies in
//! pieces.
//!
//! Other tasks run between two pieces. Targets and timeouts belong to the callers.

use std::convert::Infallible;
use std::sync::LazyLock;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use reqwest::header::CONTENT_LENGTH;
use reqwest::redirect::Policy;
use reqwest::{Body, Client, ClientBuilder, RequestBuilder};
use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt as _;
use tokio::task::yield_now;

/// The size of a piece of a body. Other tasks may run after each piece.
const PIECE: usize = 256 << 10;

/// Returns the builder of a client. The client follows no redirects, since requests are meant only
/// for the named host. It ignores proxies in the environment.
///
/// All clients share the system's certificates, which are loaded for the first client. Decoding
/// them takes milliseconds.
pub fn client_builder() -> Result<ClientBuilder, rustls::Error> {
    let mut tls = tls()?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Client::builder()
        .tls_backend_preconfigured(tls)
        .redirect(Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        .user_agent(concat!("agent-runtime/", env!("CARGO_PKG_VERSION"))))
}

/// Returns the settings of TLS without a protocol inside it: the system decides who is trusted.
pub fn tls() -> Result<ClientConfig, rustls::Error> {
    static TLS: LazyLock<Result<ClientConfig, rustls::Error>> = LazyLock::new(ClientConfig::with_platform_verifier);
    (*TLS).clone()
}

/// Adds a body to a request. A large body is sent in pieces, so that other tasks can run in
/// between. A fast socket would otherwise accept tens of megabytes in one call and occupy the
/// thread.
pub fn with_body(request: RequestBuilder, body: Bytes) -> RequestBuilder {
    let length = body.len();
    if length <= PIECE {
        return request.body(body);
    }
    // Without a length, the body would have chunked encoding, which not every server accepts.
    request
        .header(CONTENT_LENGTH, length)
        .body(Body::wrap_stream(in_pieces(body)))
}

fn in_pieces(body: Bytes) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::unfold(body, async |mut rest| {
        if rest.is_empty() {
            return None;
        }
        yield_now().await;
        let piece = rest.split_to(rest.len().min(PIECE));
        Some((Ok(piece), rest))
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::{FutureExt as _, StreamExt as _};

    use super::*;

    #[test]
    fn other_tasks_go_on_before_each_piece_of_a_large_body() {
        let body: Bytes = (0..=u8::MAX).cycle().take(2 * PIECE + 1).collect();
        let mut pieces = pin!(in_pieces(body.clone()));
        let mut sent = Vec::new();
        for length in [PIECE, PIECE, 1] {
            assert_eq!(pieces.next().now_or_never(), None);
            let piece = pieces.next().now_or_never().unwrap().unwrap().unwrap();
            assert_eq!(piece.len(), length);
            sent.extend_from_slice(&piece);
        }
        assert_eq!(pieces.next().now_or_never(), Some(None));
        assert_eq!(sent, body);
    }
}
