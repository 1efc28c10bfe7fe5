//! Certificates for the hosts that have a secret: the proxy ends their TLS to add it.
//!
//! The authority lives as long as this process, and its key never leaves it. Only commands trust
//! it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// Ends TLS in the name of hosts.
#[derive(Clone)]
pub(super) struct Authority {
    certificate: String,
    hosts: BTreeMap<String, TlsAcceptor>,
}

/// The certificates can't be made.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    #[error("a certificate can't be made")]
    Certificate(#[from] rcgen::Error),
    #[error("a certificate can't be used")]
    Tls(#[from] rustls::Error),
}

impl Authority {
    /// Makes an authority, and a certificate for each host.
    pub(super) fn new<'a>(hosts: impl IntoIterator<Item = &'a str>) -> Result<Self, AuthorityError> {
        let mut params = params(Vec::new())?;
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params
            .distinguished_name
            .push(DnType::CommonName, "agent-runtime, proxy of commands");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        let hosts = hosts.into_iter().map(|host| {
            let acceptor = new_acceptor(host, &issuer)?;
            Ok((host.to_owned(), acceptor))
        });
        Ok(Self {
            hosts: hosts.collect::<Result<_, AuthorityError>>()?,
            certificate: issuer.pem(),
        })
    }

    /// Returns the certificate that commands are to trust, as PEM.
    pub(super) fn certificate(&self) -> &str {
        &self.certificate
    }

    pub(super) fn acceptor(&self, host: &str) -> Option<&TlsAcceptor> {
        self.hosts.get(host)
    }
}

fn new_acceptor(host: &str, issuer: &CertifiedIssuer<'_, KeyPair>) -> Result<TlsAcceptor, AuthorityError> {
    let name = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let mut params = params(vec![name])?;
    params.use_authority_key_identifier_extension = true;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, issuer)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(vec![certificate.der().clone()], key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Begins a certificate that is valid even if the clock of the host is wrong.
fn params(names: Vec<String>) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(names)?;
    params.not_before = date_time_ymd(2020, 1, 1);
    params.not_after = date_time_ymd(2120, 1, 1);
    Ok(params)
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.hosts.keys()).finish()
    }
}
