//! Secrets that the proxy adds: the host gets them, and no command and no other host does.

use std::fs;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use net::egress::{EgressProxy, HostSecret};
use net::outgoing::SystemResolver;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sandbox::Exit;
use test_support::raw_server::{RawReply, RawRequest, RawServer};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;

use super::{LIMITS, World, certificate, ports, rules};

const SECRET: &str = "hunter2-hunter2";
const PLACEHOLDER: &str = "placeholder-of-TOKEN";

/// A server that is reached over TLS only, at `127.0.0.1`.
struct TlsServer {
    server: RawServer,
    port: u16,
    front: JoinHandle<()>,
}

impl TlsServer {
    /// Starts a server that repeats the header `authorization` in its response.
    async fn start() -> Self {
        let echo = |request: &RawRequest| {
            let sent = request.header("authorization").unwrap_or("none").to_owned();
            RawReply::new(200, &[("x-sent", &sent)], format!("{} {sent}", request.line()))
        };
        Self::start_with(echo).await
    }

    async fn start_with(react: impl Fn(&RawRequest) -> RawReply + Send + Sync + 'static) -> Self {
        let server = RawServer::start(react).await;
        let behind = server.port();
        let chain = CertificateDer::pem_file_iter(certificate("server.pem")).unwrap();
        let key = PrivateKeyDer::from_pem_file(certificate("server.key")).unwrap();
        let config = ServerConfig::builder().with_no_client_auth();
        let config = config.with_single_cert(chain.map(Result::unwrap).collect(), key);
        let acceptor = TlsAcceptor::from(Arc::new(config.unwrap()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let front = tokio::spawn(async move {
            loop {
                let (client, _) = listener.accept().await.unwrap();
                // A client that does not believe the certificate goes away.
                if let Ok(mut client) = acceptor.accept(client).await {
                    let mut server = TcpStream::connect(("127.0.0.1", behind)).await.unwrap();
                    tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
                }
            }
        });
        Self { server, port, front }
    }

    fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    /// Returns the header `authorization` of each request.
    fn received(&self) -> Vec<String> {
        let requests = self.server.requests();
        let header = |request: &RawRequest| request.header("authorization").unwrap_or("none").to_owned();
        requests.iter().map(header).collect()
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        self.front.abort();
    }
}

/// Makes a world whose proxy has a secret for the server and trusts an authority. Commands trust
/// that of the proxy and that of the server.
async fn world_for(server: &TlsServer, trusted: &str) -> Option<World> {
    let host = format!("127.0.0.1:{}", server.port);
    let secret = HostSecret::new("TOKEN", &host, ("authorization", "Bearer "), SECRET.into()).unwrap();
    let ports = ports(Arc::new(SystemResolver), trusted);
    let proxy = EgressProxy::new(rules(&["127.0.0.1"]), LIMITS, vec![secret], ports).unwrap();
    let own = proxy.certificate().unwrap().to_owned();
    let world = World::new(proxy).await?;
    let known = fs::read_to_string(certificate("authority.pem")).unwrap();
    fs::write(world.path("files").join("trusted.pem"), format!("{own}{known}")).unwrap();
    Some(world)
}

const TRUST: [&str; 2] = ["--cacert", "trusted.pem"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_host_gets_the_secret_and_the_command_never_sees_it() {
    let server = TlsServer::start().await;
    let Some(world) = world_for(&server, "authority.pem").await else {
        return;
    };
    let bearer = format!("authorization: token {PLACEHOLDER}");
    let user = format!("me:{PLACEHOLDER}");
    let url = server.url("/a?b=c");
    let cases: [(&[&str], String); 4] = [
        (&[], format!("Bearer {SECRET}")),
        (&["-H", &bearer], format!("token {SECRET}")),
        (
            &["-u", &user],
            format!("Basic {}", STANDARD.encode(format!("me:{SECRET}"))),
        ),
        (
            &["-H", "authorization: mine", "-H", "host: other.test"],
            "mine".to_owned(),
        ),
    ];
    for (arguments, expected) in &cases {
        let ended = world.curl(&[&TRUST, &["-i", &url], *arguments].concat()).await;
        assert_eq!(ended.exit, Exit::Code(0), "{}", ended.text);
        assert!(ended.text.contains("GET /a?b=c "), "{}", ended.text);
        assert!(!ended.text.contains(SECRET), "{}", ended.text);
        let shown = expected
            .strip_prefix("Basic ")
            .is_some_and(|encoded| ended.text.contains(encoded));
        assert!(!shown, "{}", ended.text);
        assert_eq!(server.received().last(), Some(expected));
    }
    let requests = server.server.requests();
    let host = format!("127.0.0.1:{}", server.port);
    assert!(requests.iter().all(|request| request.header("host") == Some(&host)));

    // Python checks certificates more strictly.
    let program = format!(
        "import ssl, urllib.request as r
context = ssl.create_default_context(cafile='trusted.pem')
context.verify_flags |= ssl.VERIFY_X509_STRICT
print(r.urlopen('{url}', context=context).read())"
    );
    let ended = world.python(&program).await;
    let masked = "*".repeat(SECRET.len());
    assert_eq!(ended.text, format!("b'GET /a?b=c Bearer {masked}'\n"));

    // Neither its variables nor any file or process that it can read has it.
    let search = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null; \
                  grep -rl hunter2- . \"$TMPDIR/..\" /tmp /etc 2>/dev/null; echo searched";
    let ended = world.run("/bin/sh", &["-c", search]).await;
    assert!(
        ended.text.ends_with("searched\n") && !ended.text.contains(SECRET),
        "{}",
        ended.text
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_other_host_gets_the_secret_not_even_by_a_redirect() {
    let other = TlsServer::start().await;
    let plain = RawServer::start(|_| RawReply::text("plain")).await;
    let (to_other, to_plain) = (other.url("/"), plain.url("/"));
    let server = TlsServer::start_with(move |request| match request.line() {
        "GET /other" => RawReply::redirect(302, &to_other),
        _ => RawReply::redirect(302, &to_plain),
    })
    .await;
    let Some(world) = world_for(&server, "authority.pem").await else {
        return;
    };
    let header = format!("authorization: {PLACEHOLDER}");
    let trusted = ["-L", "--location-trusted", "-H", header.as_str()];
    for url in [
        other.url("/"),
        plain.url("/"),
        server.url("/other"),
        server.url("/plain"),
    ] {
        let ended = world.curl(&[&TRUST[..], &[&url], &trusted[..]].concat()).await;
        assert_eq!(ended.exit, Exit::Code(0), "{url}: {}", ended.text);
    }
    assert_eq!(server.received(), [SECRET, SECRET]);
    assert_eq!(other.received(), [PLACEHOLDER, PLACEHOLDER]);
    let plain = plain.requests();
    assert!(
        plain
            .iter()
            .all(|request| request.header("authorization") == Some(PLACEHOLDER))
    );
    assert_eq!(plain.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_is_not_trusted_gets_nothing() {
    let server = TlsServer::start().await;
    let Some(world) = world_for(&server, "stranger.pem").await else {
        return;
    };
    let url = server.url("/");
    let ended = world.curl(&[&TRUST[..], &[&url, "-w", "%{http_code}"]].concat()).await;
    assert!(ended.text.ends_with("502"), "{}", ended.text);
    assert!(server.received().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_that_repeats_headers_is_refused() {
    let server = TlsServer::start().await;
    let Some(world) = world_for(&server, "authority.pem").await else {
        return;
    };
    let url = server.url("/");
    let ended = world
        .curl(&[&TRUST[..], &[&url, "-X", "TRACE", "-w", "%{http_code}"]].concat())
        .await;
    assert!(ended.text.ends_with("400"), "{}", ended.text);
    assert!(server.received().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_connection_carries_several_requests_and_large_bodies() {
    let server = TlsServer::start_with(|request| RawReply::text(&request.body)).await;
    let Some(world) = world_for(&server, "authority.pem").await else {
        return;
    };
    let url = server.url("/");
    let script = format!(
        "head -c 3000000 /dev/zero | tr '\\0' x > body; \
         for i in 1 2 3; do curl -sS --cacert trusted.pem {url} -T body -o $i {url} -T body -o $i.b; done; \
         sha256sum body 1 2 3 1.b 2.b 3.b | cut -d' ' -f1 | sort -u | wc -l"
    );
    let ended = world.run("/bin/sh", &["-c", &script]).await;
    assert_eq!(ended.text.trim(), "1");
    assert_eq!(server.received(), vec![format!("Bearer {SECRET}"); 6]);
}
