//! TLS: the certificate in force, its replacement, and the handshakes of connections.
//!
//! A replacement makes a whole new configuration, so the authorities of clients are replaced as
//! well, and no session from before is resumed. Open connections continue with the old one.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, fs, io};

use parking_lot::RwLock;
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, VerifierBuilderError, WebPkiClientVerifier};
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::certificate::{client_names, expiry};
use super::pace::{PacedStream, Patience};
use super::tls_settings::{CertifiedCaller, TlsSettings, TlsVersion};
use values::clock::Timestamp;

/// The protocol that a client selects for HTTP/2.
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

static TLS13_ALONE: &[&SupportedProtocolVersion] = &[&rustls::version::TLS13];

/// The TLS of a listener.
pub struct Tls {
    settings: TlsSettings,
    /// The configuration in force, and the hash of the files that it is from.
    current: RwLock<(blake3::Hash, Arc<ServerConfig>)>,
}

/// The files that can't be used, and why.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("can't read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} is not PEM, or has no {wanted}", path.display())]
    Pem {
        path: PathBuf,
        wanted: &'static str,
        source: pem::Error,
    },
    #[error("the certificate and the key can't be used together")]
    Pair(#[source] rustls::Error),
    #[error("an authority of client certificates can't be used")]
    Authority(#[source] rustls::Error),
    #[error("the authorities of client certificates can't be used")]
    Authorities(#[source] VerifierBuilderError),
    #[error("the certificate can't be read")]
    Certificate,
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
}

/// The result of reading the files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// The files are those in force.
    Unchanged,
    /// New connections get another certificate.
    Replaced {
        /// When it expires.
        expires_at: Timestamp,
    },
}

/// A connection after its handshake.
pub(super) enum Opened {
    /// TLS is in force.
    Tls(Box<TlsStream<PacedStream>>),
    /// The client speaks HTTP without TLS.
    PlainHttp(PacedStream),
}

impl Tls {
    /// Reads the files, and returns when the certificate expires. It may have expired already.
    /// Returns `None` if TLS is off.
    pub fn load(settings: &TlsSettings) -> Result<Option<(Self, Timestamp)>, TlsError> {
        let (Some(certificate), Some(key)) = (&settings.certificate, &settings.key) else {
            return Ok(None);
        };
        let files = Files::read(certificate, key, settings.client_ca.as_deref())?;
        let (config, expires_at) = files.config(settings)?;
        let tls = Self {
            settings: settings.clone(),
            current: RwLock::new((files.hash(), Arc::new(config))),
        };
        Ok(Some((tls, expires_at)))
    }

    /// Reads the files again, and replaces the certificate if they have other contents. Replaces
    /// nothing if they can't be used, or if the new certificate has expired. Blocks.
    pub fn reload(&self, now: Timestamp) -> Result<Reload, TlsError> {
        let (Some(certificate), Some(key)) = (&self.settings.certificate, &self.settings.key) else {
            return Ok(Reload::Unchanged);
        };
        let files = Files::read(certificate, key, self.settings.client_ca.as_deref())?;
        let hash = files.hash();
        if hash == self.current.read().0 {
            return Ok(Reload::Unchanged);
        }
        let (config, expires_at) = files.config(&self.settings)?;
        if expires_at <= now {
            return Err(TlsError::Expired(expires_at));
        }
        *self.current.write() = (hash, Arc::new(config));
        Ok(Reload::Replaced { expires_at })
    }

    /// Returns whether client certificates identify callers.
    pub(super) fn identifies_clients(&self) -> bool {
        !self.settings.clients.is_empty()
    }

    /// Performs the handshake of a connection.
    pub(super) async fn open(&self, stream: TcpStream, patience: Patience) -> io::Result<Opened> {
        let mut first = [0];
        let is_plain = stream.peek(&mut first).await? > 0 && first[0].is_ascii_alphabetic();
        let stream = PacedStream::new(stream, patience);
        if is_plain {
            return Ok(Opened::PlainHttp(stream));
        }
        let config = Arc::clone(&self.current.read().1);
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        Ok(Opened::Tls(Box::new(stream)))
    }

    /// Returns the caller that the client certificate of a connection identifies.
    pub(super) fn caller(&self, stream: &TlsStream<PacedStream>) -> Option<CertifiedCaller> {
        let certificate = stream.get_ref().1.peer_certificates()?.first()?;
        client_names(certificate).iter().find_map(|name| {
            let client = self.settings.clients.get(name)?;
            Some(CertifiedCaller::new(name, client))
        })
    }
}

/// Returns whether the client has selected HTTP/2.
pub(super) fn is_http2(stream: &TlsStream<PacedStream>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(HTTP2)
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Tls")
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

/// The contents of the files.
struct Files {
    certificate: (PathBuf, Vec<u8>),
    key: (PathBuf, Vec<u8>),
    client_ca: Option<(PathBuf, Vec<u8>)>,
}

impl Files {
    fn read(certificate: &Path, key: &Path, client_ca: Option<&Path>) -> Result<Self, TlsError> {
        let read = |path: &Path| match fs::read(path) {
            Ok(bytes) => Ok((path.to_owned(), bytes)),
            Err(source) => Err(TlsError::Read {
                path: path.to_owned(),
                source,
            }),
        };
        Ok(Self {
            certificate: read(certificate)?,
            key: read(key)?,
            client_ca: client_ca.map(read).transpose()?,
        })
    }

    fn hash(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for (_, bytes) in [&self.certificate, &self.key].into_iter().chain(&self.client_ca) {
            hasher.update(blake3::hash(bytes).as_bytes());
        }
        hasher.finalize()
    }

    /// Checks the files, and makes a configuration from them. Returns when the certificate expires.
    fn config(&self, settings: &TlsSettings) -> Result<(ServerConfig, Timestamp), TlsError> {
        let chain = certificates(&self.certificate)?;
        let expires_at = chain.first().and_then(expiry).ok_or(TlsError::Certificate)?;
        let (path, key) = &self.key;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|source| TlsError::Pem {
            path: path.clone(),
            wanted: "private key",
            source,
        })?;
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider));
        let builder = builder.with_protocol_versions(versions(settings.min_version));
        let builder = builder.map_err(TlsError::Pair)?;
        let builder = match &self.client_ca {
            None => builder.with_no_client_auth(),
            Some(file) => {
                let roots = Arc::new(authorities(file)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider);
                // Callers may have an API key instead.
                let verifier = verifier.allow_unauthenticated().build();
                builder.with_client_cert_verifier(verifier.map_err(TlsError::Authorities)?)
            }
        };
        // Fails if the key is of another certificate.
        let mut config = builder.with_single_cert(chain, key).map_err(TlsError::Pair)?;
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        if self.client_ca.is_some() {
            // A resumed session would not check the client's certificate again.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok((config, expires_at))
    }
}

fn versions(least: TlsVersion) -> &'static [&'static SupportedProtocolVersion] {
    match least {
        TlsVersion::Tls12 => rustls::ALL_VERSIONS,
        TlsVersion::Tls13 => TLS13_ALONE,
    }
}

fn authorities(file: &(PathBuf, Vec<u8>)) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate).map_err(TlsError::Authority)?;
    }
    Ok(roots)
}

/// Returns the certificates of a file: at least one.
fn certificates((path, bytes): &(PathBuf, Vec<u8>)) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let chain: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(bytes).collect();
    let invalid = |source| TlsError::Pem {
        path: path.clone(),
        wanted: "certificate",
        source,
    };
    let chain = chain.map_err(invalid)?;
    if chain.is_empty() {
        return Err(invalid(pem::Error::NoItemsFound));
    }
    Ok(chain)
}
