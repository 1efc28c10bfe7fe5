//! A service that speaks TLS: replacements of its certificate, plain HTTP on its port, and client
//! certificates. `tls_frames` has the limits of HTTP/2.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType, date_time_ymd};
use reqwest::{Client, Method, StatusCode, Version};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use test_support::ports::free_port;
use test_support::wait::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::binary::Home;
use super::service::Service;
use crate::support::test_app::plain_client;
use crate::support::text::assert_contains;

/// Issues certificates.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM.
pub(super) struct Pair {
    certificate: String,
    key: String,
}

impl Authority {
    pub(super) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "authority");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Issues a certificate of the service that is valid until the year.
    fn server_until(&self, year: i32) -> Pair {
        self.issue(SanType::IpAddress([127, 0, 0, 1].into()), year)
    }

    pub(super) fn server(&self) -> Pair {
        self.server_until(2100)
    }

    fn client(&self, uri: &str) -> Pair {
        self.issue(SanType::URI(uri.try_into().unwrap()), 2100)
    }

    fn issue(&self, name: SanType, year: i32) -> Pair {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, "holder");
        params.subject_alt_names = vec![name];
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 1, 1);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Pair {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        }
    }

    /// Makes the settings of a client that trusts the authority.
    pub(super) fn trusting(&self, identity: Option<&Pair>, protocol: &[u8]) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        let authority = CertificateDer::from_pem_slice(self.0.pem().as_bytes()).unwrap();
        roots.add(authority).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots);
        let mut config = match identity {
            None => config.with_no_client_auth(),
            Some(pair) => {
                let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
                config.with_client_auth_cert(vec![pair.der()], key).unwrap()
            }
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        config
    }

    /// Makes a client that connects anew for each request.
    fn http_client(&self, identity: Option<&Pair>, protocol: &[u8]) -> Client {
        let builder = Client::builder().tls_backend_preconfigured(self.trusting(identity, protocol));
        builder.no_proxy().pool_max_idle_per_host(0).build().unwrap()
    }
}

impl Pair {
    fn der(&self) -> CertificateDer<'static> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).unwrap()
    }

    /// Puts the pair into a folder, and makes the link `current` lead to it at once.
    pub(super) fn install(&self, home: &Home, folder: &str) {
        home.write(&format!("tls/{folder}/tls.crt"), &self.certificate);
        home.write(&format!("tls/{folder}/tls.key"), &self.key);
        let tls = home.path().join("tls");
        symlink(folder, tls.join("next")).unwrap();
        fs::rename(tls.join("next"), tls.join("current")).unwrap();
    }
}

/// Makes a folder whose service speaks TLS with the pair.
pub(super) fn home_with(pair: &Pair) -> Home {
    let home = Home::with_file()
        .variable("AGENT_RUNTIME__HTTP__TLS__CERTIFICATE", "tls/current/tls.crt")
        .variable("AGENT_RUNTIME__HTTP__TLS__KEY", "tls/current/tls.key");
    pair.install(&home, "first");
    home
}

/// Connects with TLS.
pub(super) async fn connect(address: &str, config: ClientConfig) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

/// Returns the certificate that a new connection gets.
async fn served(service: &Service, authority: &Authority) -> CertificateDer<'static> {
    let stream = connect(&service.address, authority.trusting(None, b"http/1.1"))
        .await
        .unwrap();
    let certificates = stream.get_ref().1.peer_certificates().unwrap();
    certificates[0].clone()
}

async fn until_served(service: &Service, authority: &Authority, pair: &Pair) {
    until("the certificate is not replaced", async || {
        served(service, authority).await == pair.der()
    })
    .await;
}

/// Reads a response, and returns its head.
async fn read_response(stream: &mut TlsStream<TcpStream>) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let length = length.lines().next().unwrap().parse().unwrap();
    stream.read_exact(&mut vec![0; length]).await.unwrap();
    head
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_the_certificate_is_replaced() {
    const PROBE: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";
    let authority = Authority::new();
    let home = home_with(&authority.server()).variable("AGENT_RUNTIME__HTTP__HEADER_TIMEOUT", "1m");
    let service = Service::start(&home).await;
    let mut old = connect(&service.address, authority.trusting(None, b"http/1.1"))
        .await
        .unwrap();
    let mut last = authority.server();
    for swap in 0..20 {
        last = authority.server();
        last.install(&home, &swap.to_string());
        service.signal("HUP");
        let (protocol, version): (&[u8], _) = match swap % 2 {
            0 => (b"h2", Version::HTTP_2),
            _ => (b"http/1.1", Version::HTTP_11),
        };
        let client = authority.http_client(None, protocol);
        for _ in 0..50 {
            let request = client.get(format!("https://{}/healthz", service.address));
            let response = request.send().await.unwrap();
            assert_eq!((response.status(), response.version()), (StatusCode::OK, version));
        }
        old.write_all(PROBE).await.unwrap();
        let head = read_response(&mut old).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    until_served(&service, &authority, &last).await;
    service.stop().await;
}

#[tokio::test]
async fn files_that_cannot_be_used_change_nothing() {
    let authority = Authority::new();
    let first = authority.server();
    let metrics = format!("127.0.0.1:{}", free_port());
    let home = home_with(&first).variable("AGENT_RUNTIME__METRICS__LISTEN", &metrics);
    let service = Service::start(&home).await;
    let read = async || {
        let response = plain_client().get(format!("http://{metrics}/metrics")).send();
        response.await.unwrap().text().await.unwrap()
    };
    let until_reported = async |words: &str| {
        service.signal("HUP");
        until("the failure is not reported", async || service.log().contains(words)).await;
        assert_contains!(read().await, "agent_runtime_tls_last_reload_successful 0\n");
        assert_eq!(served(&service, &authority).await, first.der());
    };
    // 1 January 2100.
    assert_contains!(
        read().await,
        "agent_runtime_tls_certificate_expiry_timestamp_seconds 4102444800\n",
        "agent_runtime_tls_last_reload_successful 1\n"
    );

    let (one, other) = (authority.server(), authority.server());
    let mixed = Pair {
        certificate: one.certificate.clone(),
        key: other.key.clone(),
    };
    mixed.install(&home, "mixed");
    until_reported("can't be used together").await;
    authority.server_until(2024).install(&home, "expired");
    until_reported("the certificate expired at 2024-01-01").await;
    fs::remove_file(home.path().join("tls/current")).unwrap();
    until_reported("can't read").await;
    for secret in [&mixed.key, &one.key] {
        let line = secret.lines().nth(1).unwrap();
        assert!(!service.log().contains(line), "the log has a line of a key");
    }

    one.install(&home, "one");
    service.signal("HUP");
    until_served(&service, &authority, &one).await;
    assert_contains!(read().await, "agent_runtime_tls_last_reload_successful 1\n");
    service.stop().await;
}

#[tokio::test]
async fn a_link_that_leads_elsewhere_is_noticed_without_a_signal() {
    let authority = Authority::new();
    let home = home_with(&authority.server());
    let service = Service::start(&home).await;
    let second = authority.server();
    second.install(&home, "second");
    until_served(&service, &authority, &second).await;
    service.stop().await;
}

#[tokio::test]
async fn a_service_starts_with_an_expired_certificate_but_not_with_a_wrong_key() {
    let authority = Authority::new();
    let home = home_with(&authority.server_until(2024));
    let service = Service::start(&home).await;
    assert_contains!(service.log(), "the certificate has expired");
    let url = format!("https://{}/healthz", service.address);
    home.succeed(&["healthcheck", "--url", &url]).await;
    service.stop().await;
    let pair = Pair {
        certificate: authority.server().certificate,
        key: authority.server().key,
    };
    let home = home_with(&pair);
    assert_contains!(home.fail(&["serve"]).await, "http.tls", "can't be used together");
    assert_contains!(home.fail(&["check-config"]).await, "can't be used together");
}

#[tokio::test]
async fn a_handshake_has_ten_seconds_and_counts_as_a_connection() {
    let authority = Authority::new();
    let home = home_with(&authority.server()).variable("AGENT_RUNTIME__HTTP__MAX_CONNECTIONS", "1");
    let service = Service::start(&home).await;
    let mut silent = TcpStream::connect(&service.address).await.unwrap();
    let began = Instant::now();
    let client = authority.http_client(None, b"h2");
    let get = async |path: &str| {
        let response = client
            .get(format!("https://{}{path}", service.address))
            .send()
            .await
            .unwrap();
        (response.status(), response.text().await.unwrap())
    };
    assert_eq!(get("/healthz").await.0, StatusCode::OK);
    let (_, problem) = get("/v1/me").await;
    assert_contains!(problem, "too_many_connections");
    // The end, or a reset.
    let _ = silent.read(&mut [0]).await;
    let waited = began.elapsed();
    assert!((8..20).contains(&waited.as_secs()), "{waited:?}");
    until("the connection is still counted", async || {
        get("/v1/me").await.0 == StatusCode::OK
    })
    .await;
    service.stop().await;
}

#[tokio::test]
async fn plain_http_gets_a_hint() {
    let authority = Authority::new();
    let home = home_with(&authority.server());
    let service = Service::start(&home).await;
    assert_contains!(service.banner(), "listening on  https://127.0.0.1:");
    let response = plain_client()
        .get(format!("http://{}/healthz", service.address))
        .send()
        .await;
    let response = response.unwrap();
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let problem: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
    assert_eq!(problem["code"], "malformed_request");
    assert_contains!(problem["detail"].as_str().unwrap(), "https://");
    service.stop().await;
}

#[tokio::test]
async fn requests_over_http2_are_those_of_http1() {
    let authority = Authority::new();
    let home = home_with(&authority.server());
    let service = Service::start(&home).await;
    let client = authority.http_client(None, b"h2");
    let call = async |path: &str, header: (&str, &str)| {
        let request = client.get(format!("https://{}{path}", service.address));
        let response = request.header(header.0, header.1).send().await.unwrap();
        assert_eq!(response.version(), Version::HTTP_2);
        let status = response.status().as_u16();
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        (status, body)
    };
    let (status, problem) = call("/v1/nothing?x=1", ("x-none", "1")).await;
    assert_eq!(
        (status, &problem["instance"]),
        (404, &json!("/v1/nothing")),
        "{problem:#}"
    );
    let (status, problem) = call("/v1/me", ("x-large", &"a".repeat(20_000))).await;
    assert_eq!(
        (status, &problem["code"]),
        (431, &json!("headers_too_large")),
        "{problem:#}"
    );
    let (status, problem) = call("/v1/me", ("origin", "https://evil.example")).await;
    assert_eq!(
        (status, &problem["code"]),
        (403, &json!("origin_not_allowed")),
        "{problem:#}"
    );
    service.stop().await;
}

#[tokio::test]
async fn openssl_agrees_on_versions_and_protocols() {
    let authority = Authority::new();
    let home = home_with(&authority.server()).variable("AGENT_RUNTIME__HTTP__TLS__MIN_VERSION", "1.3");
    home.write("authority.pem", &authority.0.pem());
    let service = Service::start(&home).await;
    let ask = |arguments: &[&str]| openssl(home.path(), &service.address, arguments);
    let (succeeded, shown) = ask(&["-alpn", "h2,http/1.1"]);
    assert!(succeeded, "{shown}");
    assert_contains!(shown, "ALPN protocol: h2", "Verify return code: 0 (ok)", "TLSv1.3");
    assert_contains!(ask(&["-alpn", "http/1.1"]).1, "ALPN protocol: http/1.1");
    assert!(!ask(&["-tls1_2"]).0);
    service.stop().await;
}

fn openssl(folder: &Path, address: &str, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("openssl")
        .args([
            "s_client",
            "-connect",
            address,
            "-CAfile",
            "authority.pem",
            "-verify_return_error",
        ])
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .current_dir(folder)
        .output()
        .unwrap();
    (
        output.status.success(),
        String::from_utf8_lossy(&output.stdout).into_owned(),
    )
}

#[tokio::test]
async fn a_client_certificate_stands_for_an_api_key() {
    const GATEWAY: &str = "spiffe://example.org/gateway";
    let (authority, stranger) = (Authority::new(), Authority::new());
    let home = home_with(&authority.server()).variable("AGENT_RUNTIME__HTTP__TLS__CLIENT_CA", "authority.pem");
    home.write("authority.pem", &authority.0.pem());
    let scopes = "scopes = ['runs:write', 'sessions:read']";
    let table = format!("[http.tls.clients.'{GATEWAY}']\ntenant = 'acme'\n{scopes}\n");
    home.write("agent-runtime.toml", &table);
    let service = Service::start(&home).await;
    let call = async |identity: Option<&Pair>, method: Method, path: &str, header: (&str, &str)| {
        let client = authority.http_client(identity, b"h2");
        let request = client.request(method, format!("https://{}{path}", service.address));
        let response = request.header(header.0, header.1).send().await.unwrap();
        let status = response.status().as_u16();
        let body: Value = serde_json::from_slice(&response.bytes().await.unwrap()).unwrap();
        (status, body)
    };
    let none = ("x-none", "1");

    let gateway = authority.client(GATEWAY);
    let (_, me) = call(Some(&gateway), Method::GET, "/v1/me", none).await;
    assert_eq!(me["tenant"], "acme", "{me:#}");
    assert_eq!(me["scopes"], json!(["runs:write", "sessions:read"]));
    let (status, problem) = call(Some(&gateway), Method::PUT, "/v1/agents/a", none).await;
    assert_eq!(
        (status, &problem["code"]),
        (403, &json!("missing_scope")),
        "{problem:#}"
    );
    let client = authority.http_client(Some(&gateway), b"h2");
    let request = client.post(format!("https://{}/v1/runs", service.address));
    let request = request
        .header("content-type", "application/json")
        .body(r#"{"input": "Hi"}"#);
    let run = request.send().await.unwrap().bytes().await.unwrap();
    let run: Value = serde_json::from_slice(&run).unwrap();
    assert_eq!(run["created_by"], json!({"certificate": GATEWAY}), "{run:#}");
    let foreign = ("origin", "https://evil.example");
    let (status, problem) = call(Some(&gateway), Method::GET, "/v1/me", foreign).await;
    assert_eq!(
        (status, &problem["code"]),
        (403, &json!("origin_not_allowed")),
        "{problem:#}"
    );

    let unlisted = authority.client("spiffe://example.org/other");
    let forged = ("x-forwarded-client-cert", "URI=spiffe://example.org/gateway");
    for identity in [None, Some(&unlisted)] {
        let (status, problem) = call(identity, Method::GET, "/v1/me", forged).await;
        assert_eq!(
            (status, &problem["code"]),
            (401, &json!("missing_api_key")),
            "{problem:#}"
        );
    }
    let (status, _) = call(Some(&gateway), Method::GET, "/v1/me", ("authorization", "Bearer ark_x")).await;
    assert_eq!(status, 401);

    // With TLS 1.3 the client learns only from its first read that it was refused.
    let of_stranger = stranger.client(GATEWAY);
    let refused = authority.http_client(Some(&of_stranger), b"h2");
    let refused = refused.get(format!("https://{}/v1/me", service.address)).send().await;
    assert!(refused.is_err(), "{refused:?}");
    service.stop().await;
}
