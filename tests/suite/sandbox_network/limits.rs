//! The limits of one command at the proxy.

use std::time::{Duration, Instant};

use net::egress::EgressLimits;
use test_support::raw_server::{RawReply, RawServer, head};

use super::{LIMITS, World, proxy_within};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_connections_waits_and_harms_nobody_else() {
    let server = RawServer::start(|_| RawReply::text("permitted")).await;
    let few = EgressLimits {
        connections: 2,
        ..LIMITS
    };
    let Some(world) = World::new(proxy_within(few)).await else {
        return;
    };
    let program = format!(
        "import socket
request = b'GET {url} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n'
all = [socket.create_connection(('127.0.0.1', 3128)) for _ in range(100)]
last = all[2]
last.sendall(request)
last.settimeout(1)
try: print(last.recv(100))
except TimeoutError: print('waits')
for other in all[:2]: other.close()
last.settimeout(60)
print(last.recv(12))",
        url = server.url("/")
    );
    let flood = world.python(&program);
    // Another command has connections of its own.
    let other = World::new(proxy_within(few)).await.unwrap();
    let url = server.url("/");
    let url = [url.as_str()];
    let (flood, other) = tokio::join!(flood, other.curl(&url));
    assert_eq!(flood.text, "waits\nb'HTTP/1.1 200'\n");
    assert_eq!(other.text, "permitted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_silent_connections_end() {
    let silent = RawServer::start(|_| RawReply::bytes("").then_hang()).await;
    let trickling = RawServer::start(|_| RawReply::bytes(head(200, &[])).then_hang()).await;
    let limits = EgressLimits {
        idle_timeout: Duration::from_secs(1),
        ..LIMITS
    };
    let Some(world) = World::new(proxy_within(limits)).await else {
        return;
    };
    let started = Instant::now();
    let drip = "import socket, time
s = socket.create_connection(('127.0.0.1', 3128))
s.settimeout(0.2)
end = 'open'
for byte in b'GET http://127.0.0.1/ HTTP/1.1\\r\\nhost: ' + b'x' * 200:
    try:
        s.sendall(bytes([byte]))
        if not s.recv(1000): raise ConnectionError
    except TimeoutError: continue
    except ConnectionError:
        end = 'closed'
        break
print(end)";
    let tunnel = format!(
        "import socket
s = socket.create_connection(('127.0.0.1', 3128))
s.sendall(b'CONNECT 127.0.0.1:{port} HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n')
s.settimeout(20)
while s.recv(1000): pass
print('closed')",
        port = silent.port()
    );
    let urls = [silent.url("/"), trickling.url("/")];
    let [silent, trickling] = [[urls[0].as_str()], [urls[1].as_str()]];
    let (drip, tunnel, no_response, half) = tokio::join!(
        world.python(drip),
        world.python(&tunnel),
        world.curl(&silent),
        world.curl(&trickling)
    );
    assert_eq!((drip.text.as_str(), tunnel.text.as_str()), ("closed\n", "closed\n"));
    for ended in [no_response, half] {
        assert!(ended.text.contains("curl: ("), "{}", ended.text);
    }
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_ends_after_its_time_even_if_it_is_busy() {
    let endless = RawServer::start(|_| RawReply::bytes(head(200, &[])).then_repeat("\r\nx".repeat(100))).await;
    let limits = EgressLimits {
        connection_time: Duration::from_secs(1),
        bytes: u64::MAX,
        ..LIMITS
    };
    let Some(world) = World::new(proxy_within(limits)).await else {
        return;
    };
    let started = Instant::now();
    let ended = world.curl(&[&endless.url("/"), "-o", "/dev/null"]).await;
    assert!(ended.text.contains("curl: ("), "{}", ended.text);
    assert!(started.elapsed() < Duration::from_secs(45), "{:?}", started.elapsed());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_moves_as_many_bytes_as_it_may() {
    let endless = RawServer::start(|_| RawReply::bytes(head(200, &[])).then_repeat("\r\nx".repeat(1000))).await;
    let limits = EgressLimits {
        bytes: 1 << 20,
        ..LIMITS
    };
    let Some(world) = World::new(proxy_within(limits)).await else {
        return;
    };
    let url = endless.url("/");
    let script = format!("curl -s {url} | wc -c; curl -s {url} | wc -c");
    let ended = world.run("/bin/sh", &["-c", &script]).await;
    let counts: Vec<usize> = ended.text.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert!(counts[0] > 1 << 18 && counts[0] < 3 << 19, "{counts:?}");
    assert_eq!(counts[1..], [0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_are_bounded() {
    let server = RawServer::start(|_| RawReply::text("permitted")).await;
    let Some(world) = World::new(proxy_within(LIMITS)).await else {
        return;
    };
    let program = |headers: &str| {
        format!(
            "import socket
s = socket.create_connection(('127.0.0.1', 3128), 20)
try:
    s.sendall(b'GET {url} HTTP/1.1\\r\\nhost: x\\r\\n' + {headers} + b'\\r\\n')
    print(s.recv(12))
except ConnectionError: print('closed')",
            url = server.url("/")
        )
    };
    for headers in ["b'a: ' + b'x' * 10_000_000 + b'\\r\\n'", "b'a: b\\r\\n' * 5000"] {
        let ended = world.python(&program(headers)).await;
        let expected = ["b'HTTP/1.1 431'\n", "closed\n", "b''\n"];
        assert!(expected.contains(&ended.text.as_str()), "{}", ended.text);
    }
    assert!(server.requests().is_empty());
}
