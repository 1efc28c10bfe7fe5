//! Ends the TLS of hosts that have a secret, adds the secret, and forwards over TLS of its own.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::ACCEPT_ENCODING;
use hyper::{Method, Request, Response};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::server::TlsStream;

use super::authority::{Authority, AuthorityError};
use super::body::ProxyBody;
use super::exchange::exchange;
use super::masked::{MaskedBody, mask_headers};
use super::refusal::Refusal;
use super::secret::HostSecret;
use crate::outgoing::{Connector, OutgoingError, Target};

/// The hosts that have a secret.
#[derive(Debug)]
pub(super) struct Interceptor {
    secrets: Vec<HostSecret>,
    authority: Authority,
    tls: Arc<ClientConfig>,
}

impl Interceptor {
    pub(super) fn new(secrets: Vec<HostSecret>, mut tls: ClientConfig) -> Result<Self, AuthorityError> {
        let authority = Authority::new(secrets.iter().map(HostSecret::host))?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            secrets,
            authority,
            tls: Arc::new(tls),
        })
    }

    pub(super) fn secrets(&self) -> &[HostSecret] {
        &self.secrets
    }

    pub(super) fn certificate(&self) -> &str {
        self.authority.certificate()
    }

    /// Returns whether the host has a secret at this port.
    pub(super) fn is_for(&self, target: &Target) -> bool {
        !self.secrets_of(target).is_empty()
    }

    fn secrets_of(&self, target: &Target) -> Vec<&HostSecret> {
        let port = target.url().port_or_known_default().unwrap_or_default();
        let secrets = self.secrets.iter();
        secrets.filter(|secret| secret.is_for(target.host(), port)).collect()
    }

    /// Speaks TLS with the command as if it were the host. Returns `None` if that fails.
    pub(super) async fn accept<S>(&self, target: &Target, stream: S) -> Option<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        self.authority.acceptor(target.host())?.accept(stream).await.ok()
    }

    /// Forwards a request to the host. A host that the request names is ignored.
    pub(super) async fn forward(
        &self,
        connector: &Connector,
        host: &Target,
        mut request: Request<Incoming>,
    ) -> Result<Response<ProxyBody>, Refusal> {
        if request.method() == Method::TRACE {
            return Err(Refusal::Trace);
        }
        let path = request
            .uri()
            .path_and_query()
            .filter(|path| path.as_str().starts_with('/'));
        let path = path.ok_or(Refusal::NotForProxy)?;
        let origin = &host.url()[..url::Position::BeforePath];
        let target = connector.target(&format!("{origin}{path}"))?;
        let secrets = self.secrets_of(&target);
        let headers = request.headers_mut();
        headers.remove(ACCEPT_ENCODING);
        for secret in &secrets {
            secret.apply(headers);
        }
        let server = self.connect(connector, &target).await?;
        let (mut head, body) = exchange(server, &target, request).await?.into_parts();
        mask_headers(&mut head.headers, &secrets);
        let body = MaskedBody::new(body, secrets);
        Ok(Response::from_parts(head, body.boxed_unsync()))
    }

    async fn connect(
        &self,
        connector: &Connector,
        target: &Target,
    ) -> Result<impl AsyncRead + AsyncWrite + Unpin + Send + use<>, OutgoingError> {
        let name = target.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        let name = ServerName::try_from(name).map_err(|error| OutgoingError::Unreachable(error.into()))?;
        let stream = connector.connect(target).await?;
        let connected = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await;
        connected.map_err(|error| OutgoingError::Unreachable(error.into()))
    }
}
