//! `healthcheck`: probes a running service, for images without an HTTP client.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

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
        None => health_url(config.http.listen)?,
    };
    probe(&url).with_context(|| url)
}

/// Returns the address of a service that listens as configured on this machine.
fn health_url(listen: SocketAddr) -> anyhow::Result<String> {
    ensure!(
        listen.port() != 0,
        "the port was chosen at start: name the address with --url"
    );
    let host = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(format!("http://{}/healthz", SocketAddr::new(host, listen.port())))
}

fn probe(url: &str) -> anyhow::Result<()> {
    let rest = url
        .strip_prefix("http://")
        .context("the address does not begin with http://")?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let addresses = host.to_socket_addrs().context("the address has no HOST:PORT")?;
    let address = addresses.into_iter().next().context("the host has no address")?;
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).context("the service can't be reached")?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
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
            assert_eq!(health_url(listen.parse().unwrap()).unwrap(), url);
        }
        assert!(health_url("127.0.0.1:0".parse().unwrap()).is_err());
    }

    #[test]
    fn unusable_addresses_are_reported() {
        for url in ["https://localhost/", "localhost:8080", "http://localhost", "http:///x"] {
            assert!(probe(url).is_err(), "{url}");
        }
    }
}
