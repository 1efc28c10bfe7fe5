//! What the HTTP clients of this process share: TLS, no redirects, no proxy, and sending large
//! bodies in pieces.
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

/// The bytes of a body that are sent before other tasks go on.
const PIECE: usize = 256 << 10;

/// Begins a client. It follows no redirect, since what is sent belongs to the named host alone, and
/// takes no proxy from the environment.
///
/// All clients trust the certificates of the system as they were when the first one was made:
/// decoding them takes milliseconds.
pub(crate) fn client_builder() -> Result<ClientBuilder, rustls::Error> {
    static TLS: LazyLock<Result<ClientConfig, rustls::Error>> = LazyLock::new(|| {
        let mut config = ClientConfig::with_platform_verifier()?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    });
    Ok(Client::builder()
        .tls_backend_preconfigured((*TLS).clone()?)
        .redirect(Policy::none())
        .no_proxy()
        .tcp_nodelay(true)
        .user_agent(concat!("agent-runtime/", env!("CARGO_PKG_VERSION"))))
}

/// Adds a body to a request. A large one is sent in pieces, so that other tasks get their turn: a
/// fast socket takes all that it is given in one call, even tens of megabytes, and occupies the
/// thread.
pub(crate) fn with_body(request: RequestBuilder, body: Bytes) -> RequestBuilder {
    let length = body.len();
    if length <= PIECE {
        return request.body(body);
    }
    // Without its length it would be sent in chunks, which not every server takes.
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
