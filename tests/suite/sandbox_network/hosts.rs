//! Which hosts a command reaches through the proxy, and which it does not.
//!
//! `127.0.0.1` is the permitted host in these tests. `127.0.0.2` is the internal one.

use sandbox::Exit;
use test_support::dns::{DnsServer, Record};
use test_support::raw_server::{RawReply, RawServer};

use super::{World, proxy_for, proxy_with};

const STATUS: [&str; 2] = ["-w", " %{http_code} %{http_connect}"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allowed_host_is_reached_with_curl_and_python() {
    let server = RawServer::start(|request| RawReply::text(&format!("{} {}", request.line(), request.body))).await;
    let Some(world) = World::new(proxy_for(&["127.0.0.1"])).await else {
        return;
    };
    let url = server.url("/a?b=c");
    let ended = world.curl(&[&url, "-d", "body", "-H", "proxy-authorization: x"]).await;
    assert_eq!((ended.text.as_str(), &ended.exit), ("POST /a?b=c body", &Exit::Code(0)));
    let request = server.requests().remove(0);
    assert_eq!(
        request.header("host"),
        Some(format!("127.0.0.1:{}", server.port()).as_str())
    );
    assert_eq!(request.header("proxy-authorization"), None);

    let program = format!("import urllib.request as r; print(r.urlopen('{url}').read())");
    let ended = world.python(&program).await;
    assert_eq!(ended.text, "b'GET /a?b=c '\n");

    // A tunnel carries any bytes.
    let ended = world.curl(&["--proxytunnel", &url]).await;
    assert_eq!(ended.text, "GET /a?b=c ");
    assert_eq!(server.requests().len(), 3);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_header_names_no_other_host_than_the_one_that_was_checked() {
    let server = RawServer::start(|_| RawReply::text("permitted")).await;
    let Some(world) = World::new(proxy_for(&["127.0.0.1"])).await else {
        return;
    };
    let ended = world.curl(&[&server.url("/"), "-H", "host: internal.test"]).await;
    assert_eq!(ended.text, "permitted");
    let request = server.requests().remove(0);
    assert!(request.header("host").unwrap().starts_with("127.0.0.1:"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_hosts_ports_and_addresses_are_refused() {
    let internal = RawServer::start_on("127.0.0.2:0", |_| RawReply::text("internal")).await;
    let Some(listed) = World::new(proxy_for(&["127.0.0.1", "*.example.org"])).await else {
        return;
    };
    let port = internal.port();
    let any = World::new(proxy_for(&["*"])).await.unwrap();
    let mut cases = vec![
        (&listed, "http://1.1.1.1/".to_owned(), "is not allowed"),
        (&listed, "http://example.com/".to_owned(), "is not allowed"),
        (&listed, "http://example.org.evil.test/".to_owned(), "is not allowed"),
        (&listed, "http://127.0.0.1:25/".to_owned(), "port 25"),
        (&listed, "http://127.0.0.1:22/".to_owned(), "port 22"),
        (&any, "http://localhost.test:6667/".to_owned(), "port 6667"),
    ];
    let private = [
        "127.0.0.2",
        "0x7f.2",
        "2130706434",
        "0177.0.0.2",
        "127.2",
        "0.0.0.0",
        "10.0.0.1",
        "169.254.169.254",
        "[::1]",
        "[::ffff:127.0.0.2]",
        "[64:ff9b::7f00:2]",
        "[fe80::1]",
    ];
    cases.extend(private.map(|host| (&any, format!("http://{host}:{port}/"), "not public")));
    for (world, url, expected) in cases {
        // What the library of `curl` would rewrite reaches the proxy as it is.
        let ended = world.python(&raw_request(&format!("GET {url} HTTP/1.1"))).await;
        assert!(
            ended.text.contains("403") && ended.text.contains(expected),
            "{url}: {}",
            ended.text
        );
        let authority = url.trim_start_matches("http://").trim_end_matches('/');
        let has_port = authority.rsplit_once(':').is_some();
        let authority = if has_port {
            authority.to_owned()
        } else {
            format!("{authority}:443")
        };
        let ended = world
            .python(&raw_request(&format!("CONNECT {authority} HTTP/1.1")))
            .await;
        assert!(
            ended.text.contains("403") && ended.text.contains(expected),
            "{authority}: {}",
            ended.text
        );
    }
    assert!(internal.requests().is_empty());
}

/// A program that sends one request to the proxy and prints the response.
fn raw_request(line: &str) -> String {
    format!(
        "import socket
s = socket.create_connection(('127.0.0.1', 3128), 20)
s.sendall(b'{line}\\r\\nhost: x\\r\\nconnection: close\\r\\n\\r\\n')
while part := s.recv(65536): print(part.decode(), end='')"
    )
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_not_for_a_proxy_is_refused() {
    let Some(world) = World::new(proxy_for(&["*"])).await else {
        return;
    };
    for line in [
        "GET / HTTP/1.1",
        "GET https://127.0.0.1/ HTTP/1.1",
        "GET ftp://127.0.0.1/ HTTP/1.1",
        "GET file:///etc/passwd HTTP/1.1",
        "CONNECT 127.0.0.1 HTTP/1.1",
        "CONNECT user@127.0.0.1:443 HTTP/1.1",
        "GET http://user:pass@127.0.0.1/ HTTP/1.1",
        "PRI * HTTP/2.0",
        "nonsense",
    ] {
        let ended = world.python(&raw_request(line)).await;
        let is_refused = ["HTTP/1.1 400", "HTTP/1.1 403"]
            .iter()
            .any(|status| ended.text.starts_with(status));
        assert!(is_refused || ended.text.is_empty(), "{line}: {}", ended.text);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_resolved_once_by_the_proxy_and_its_addresses_are_checked() {
    let (permitted, internal) = RawServer::permitted_and_internal().await;
    // The name moves to the internal host as soon as it was resolved once.
    let dns = DnsServer::start(|name, before| match (name, before) {
        ("rebind.test" | "tunnel.test", 0) => vec![Record::address("127.0.0.1")],
        ("mixed.test", _) => vec![Record::address("127.0.0.2"), Record::address("127.0.0.1")],
        _ => vec![Record::address("127.0.0.2"), Record::address("::1")],
    })
    .await;
    let Some(world) = World::new(proxy_with(&["*.test"], dns.resolver())).await else {
        return;
    };
    let port = permitted.port();
    let url = |name: &str| format!("http://{name}.test:{port}/");
    for (name, tunnel) in [("rebind", "-s"), ("tunnel", "--proxytunnel"), ("mixed", "-s")] {
        let ended = world.curl(&[tunnel, &url(name)]).await;
        assert_eq!(ended.text, "permitted", "{name}");
    }
    assert_eq!(dns.asked(), ["rebind.test", "tunnel.test", "mixed.test"]);
    for (name, tunnel) in [
        ("rebind", "-s"),
        ("tunnel", "--proxytunnel"),
        ("internal", "-s"),
        ("internal", "--proxytunnel"),
    ] {
        let ended = world.curl(&[&[tunnel, &url(name)], &STATUS[..]].concat()).await;
        assert!(
            ended.text.contains("403") && !ended.text.contains("permitted"),
            "{name}: {}",
            ended.text
        );
    }
    assert_eq!((permitted.requests().len(), internal.requests().len()), (3, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_leads_to_no_other_host() {
    let internal = RawServer::start_on("127.0.0.2:0", |_| RawReply::text("internal")).await;
    let to = internal.url("/secret");
    let permitted = RawServer::start(move |_| RawReply::redirect(302, &to)).await;
    let Some(world) = World::new(proxy_for(&["*"])).await else {
        return;
    };
    let ended = world.curl(&["-L", &permitted.url("/"), "-w", "%{http_code}"]).await;
    assert!(ended.text.ends_with("403"), "{}", ended.text);
    assert!(internal.requests().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_does_not_answer_is_a_bad_gateway() {
    let Some(world) = World::new(proxy_for(&["*"])).await else {
        return;
    };
    let gone = RawServer::start(|_| RawReply::text("")).await;
    let url = gone.url("/");
    drop(gone);
    let broken = RawServer::start(|_| RawReply::bytes("no HTTP")).await;
    for url in [url, broken.url("/")] {
        let ended = world.curl(&[&url, "-w", "%{http_code}"]).await;
        assert!(ended.text.ends_with("502"), "{}", ended.text);
    }
}
