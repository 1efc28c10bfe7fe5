//! Providers, and services that commands ask, over HTTPS: the certificates of the system decide who
//! is trusted.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use reqwest::Method;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::binary::Home;
use super::remote_commands::client;
use super::service::Service;
use crate::support::mock_model::MockModel;
use crate::support::text::assert_contains;

pub(super) fn certificate(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/certificates")
        .join(name)
}

/// A server that speaks TLS before one that does not.
pub(super) struct TlsFront {
    pub(super) address: String,
    task: JoinHandle<()>,
}

impl TlsFront {
    pub(super) async fn start(server: String) -> Self {
        let chain = CertificateDer::pem_file_iter(certificate("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(certificate("server.key")).unwrap();
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config
            .with_single_cert(chain.map(Result::unwrap).collect(), key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let task = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                // A client that does not believe the certificate goes away.
                if let Ok(mut client) = acceptor.accept(client).await {
                    let mut server = TcpStream::connect(&server).await.unwrap();
                    tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
                }
            }
        });
        Self { address, task }
    }
}

impl Drop for TlsFront {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_is_trusted_if_the_system_trusts_its_certificate() {
    let mock = MockModel::echoing().await;
    let plain = mock.base_url().parse::<reqwest::Url>().unwrap();
    let front = TlsFront::start(plain.authority().to_owned()).await;
    let home = |trusted: &str| {
        Home::with_file()
            .with_mock(&mock)
            .variable(
                "AGENT_RUNTIME__PROVIDERS__MOCK__BASE_URL",
                &format!("https://{}/v1", front.address),
            )
            .variable("SSL_CERT_FILE", certificate(trusted).to_str().unwrap())
    };

    let home_of_believer = home("authority.pem");
    let service = Service::start(&home_of_believer).await;
    let result = service.run("echo", None, "Hello.").await;
    assert_eq!(result["output_text"], "echo: Hello.", "{result:#}");
    service.stop().await;

    let home_of_doubter = home("stranger.pem");
    let service = Service::start(&home_of_doubter).await;
    let body = json!({"agent": "echo", "input": "Hello."});
    let (_, result) = service.call(Method::POST, "/v1/runs", Some(body)).await;
    assert_eq!(result["error"]["code"], "model_unreachable", "{result:#}");
    let ended = service.stop().await;
    assert!(ended.stderr.contains("invalid peer certificate"), "{}", ended.stderr);
    assert_eq!(mock.asked(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_trusts_a_service_if_the_system_trusts_its_certificate() {
    let home = Home::with_file();
    let service = Service::start(&home).await;
    let front = TlsFront::start(service.address.clone()).await;
    let trusting = |trusted: &str| {
        let client = client(&format!("https://{}", front.address), "");
        client.variable("SSL_CERT_FILE", certificate(trusted).to_str().unwrap())
    };
    let answer = trusting("authority.pem").succeed(&["run", "What is 17 * 23?"]).await;
    assert_contains!(answer, "17 * 23 = 391");
    let complaint = trusting("stranger.pem").fail(&["runs", "list"]).await;
    assert_contains!(complaint, "it can't be reached", "invalid peer certificate");
    service.stop().await;
}
