//! The network of a command: a proxy for it alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::mpsc::Receiver;

use net::egress::EgressProxy;
use sandbox::{CommandSpec, NetworkSlot, PROXY_ADDRESS};

/// Nothing but the proxy can be connected to, not even the own address.
const DIRECT: &str = "";

/// Where systems have the certificates that programs trust.
const SYSTEM_CERTIFICATES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// The variables by which programs find the certificates that they trust.
const OF_CERTIFICATES: [&str; 8] = [
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
];

/// How commands reach other hosts.
#[derive(Debug, Clone)]
pub struct CommandNetwork {
    /// Serves each command.
    pub proxy: Arc<EgressProxy>,
    /// The reachable hosts, as the model reads them.
    pub hosts: Vec<String>,
}

/// Returns the variables of the proxy, of certificates, and of placeholders.
pub(super) fn variables(network: &CommandNetwork, certificates: Option<&Path>) -> BTreeMap<String, String> {
    let mut variables: BTreeMap<_, _> = of_proxy().collect();
    if let Some(path) = certificates {
        let path = path.display().to_string();
        variables.extend(OF_CERTIFICATES.map(|name| (name.to_owned(), path.clone())));
    }
    let secrets = network.proxy.secrets().iter();
    variables.extend(secrets.map(|secret| (secret.variable().to_owned(), secret.placeholder())));
    variables
}

/// Writes the certificates that commands are to trust, if the proxy has its own: this one, and the
/// system's.
pub(super) fn write_certificates(network: &CommandNetwork, folder: &Path) -> io::Result<Option<PathBuf>> {
    let Some(own) = network.proxy.certificate() else {
        return Ok(None);
    };
    let system = SYSTEM_CERTIFICATES
        .iter()
        .find_map(|path| fs::read_to_string(path).ok());
    let path = folder.join("certificates.pem");
    fs::write(&path, format!("{}\n{own}", system.unwrap_or_default()))?;
    Ok(Some(path))
}

fn of_proxy() -> impl Iterator<Item = (String, String)> {
    let proxy = ["http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"];
    let proxy = proxy.map(|name| (name.to_owned(), format!("http://{PROXY_ADDRESS}")));
    let direct = ["no_proxy", "NO_PROXY"].map(|name| (name.to_owned(), DIRECT.to_owned()));
    proxy.into_iter().chain(direct)
}

/// The proxy of one command that is about to run.
#[derive(Debug)]
pub(super) struct ServedNetwork {
    proxy: Arc<EgressProxy>,
    listener: Receiver<TcpListener>,
}

impl ServedNetwork {
    /// Gives a command the network.
    pub(super) fn attach(network: &CommandNetwork, spec: &mut CommandSpec) -> Self {
        let (slot, listener) = NetworkSlot::new();
        spec.network = Some(slot);
        Self {
            proxy: Arc::clone(&network.proxy),
            listener,
        }
    }

    /// Serves the command until the future is dropped.
    pub(super) async fn serve(mut self) -> Infallible {
        // A command that does not start has no listener.
        if let Some(listener) = self.listener.recv().await
            && let Err(error) = self.proxy.serve(listener).await
        {
            let error = &error as &dyn std::error::Error;
            tracing::warn!(error, "the proxy of a command failed");
        }
        std::future::pending().await
    }
}
