//! `healthcheck`: probes a running service, for images without an HTTP client.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme, StreamOwned};

use super::options::SettingsArgs;

/// The timeouts of connecting and of the response.
const TIMEOUT: Duration = Duration::from_secs(3);

/// Options of `healthcheck`.
#[derive(Debug, clap::Args)]
pub(super) struct HealthcheckArgs {
    /// Probes this address instead of the configured one, such as `http://127.0.0.1:8080/readyz`.
    #[arg(long)]
    url: Option<String>,
    #[command(flatten)]
    settings: SettingsArgs,
}

/// Fails unless the status is 200.
pub(super) fn check(args: HealthcheckArgs) -> anyhow::Result<()> {
    let config = args.settings.load()?.config;
    let url = match args.url {
        Some(url) => url,
        None => health_url(config.http.listen, config.tls.is_on())?,
    };
    probe(&url).with_context(|| url)
}

/// Returns the address of a service that listens as configured on this machine.
fn health_url(listen: SocketAddr, is_tls: bool) -> anyhow::Result<String> {
    ensure!(
        listen.port() != 0,
        "the port was chosen at start: name the address with --url"
    );
    let host = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let scheme = if is_tls { "https" } else { "http" };
    Ok(format!("{scheme}://{}/healthz", SocketAddr::new(host, listen.port())))
}

fn probe(url: &str) -> anyhow::Result<()> {
    let (rest, is_tls) = match url.split_once("://") {
        Some(("http", rest)) => (rest, false),
        Some(("https", rest)) => (rest, true),
        _ => bail!("the address begins neither with http:// nor with https://"),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let addresses = host.to_socket_addrs().context("the address has no HOST:PORT")?;
    let address = addresses.into_iter().next().context("the host has no address")?;
    let stream = TcpStream::connect_timeout(&address, TIMEOUT).context("the service can't be reached")?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    if is_tls {
        let connection = ClientConnection::new(tls()?, ServerName::from(address.ip()))?;
        ask(StreamOwned::new(connection, stream), host, path)
    } else {
        ask(stream, host, path)
    }
}

/// Sends a request, and fails unless the status is 200.
fn ask(mut stream: impl Read + Write, host: &str, path: &str) -> anyhow::Result<()> {
    write!(
        stream,
        "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n"
    )?;
    let mut status = [0; 12];
    stream.read_exact(&mut status).context("the service does not respond")?;
    if !status.starts_with(b"HTTP/1.1 200") {
        bail!("the service is not healthy: {}", String::from_utf8_lossy(&status));
    }
    Ok(())
}

/// Makes the settings of a client that accepts any certificate: the probe sends no secret, and the
/// names in the certificate are those by which others reach the service.
fn tls() -> Result<Arc<ClientConfig>, rustls::Error> {
    let provider = Arc::new(ring::default_provider());
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions()?;
    let config = config
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)));
    Ok(Arc::new(config.with_no_client_auth()))
}

/// Accepts any certificate whose key the server has.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            certificate,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_service_is_probed_where_it_listens() {
        for (listen, url) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080/healthz"),
            ("0.0.0.0:80", "http://127.0.0.1:80/healthz"),
            ("[::]:80", "http://[::1]:80/healthz"),
            ("10.0.0.7:9000", "http://10.0.0.7:9000/healthz"),
        ] {
            assert_eq!(health_url(listen.parse().unwrap(), false).unwrap(), url);
        }
        let secured = health_url("127.0.0.1:8443".parse().unwrap(), true);
        assert_eq!(secured.unwrap(), "https://127.0.0.1:8443/healthz");
        assert!(health_url("127.0.0.1:0".parse().unwrap(), false).is_err());
    }

    #[test]
    fn unusable_addresses_are_reported() {
        for url in [
            "https://localhost/",
            "localhost:8080",
            "ftp://localhost:1/",
            "http://localhost",
            "http:///x",
        ] {
            assert!(probe(url).is_err(), "{url}");
        }
    }
}
