//! What the HTTP clients of this process have in common. Whom they ask, and for how long, they say themselves.

use std::sync::LazyLock;

use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder};
use rustls::ClientConfig;
use rustls_platform_verifier::ConfigVerifierExt as _;

/// Begins a client. It follows no redirect, since what is sent belongs to the named host alone, and takes no proxy from the environment.
///
/// All clients trust the certificates of the system as they were when the first one was made: decoding them takes milliseconds.
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
