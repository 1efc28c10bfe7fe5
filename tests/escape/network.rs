//! Sockets of every kind.

use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::Path;

use super::harness::Area;

/// Tries to reach servers that exist, by TCP, UDP and UNIX sockets.
#[tokio::test]
async fn no_server_is_reached() {
    let area = Area::new();
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let by_path = UnixListener::bind(area.path("other/socket")).unwrap();
    let datagrams = UnixDatagram::bind(area.path("other/datagrams")).unwrap();
    let name = format!("sandbox-test-{}", std::process::id());
    let abstract_ = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    for listener in [&by_path, &abstract_] {
        listener.set_nonblocking(true).unwrap();
    }
    datagrams.set_nonblocking(true).unwrap();
    tcp.set_nonblocking(true).unwrap();
    udp.set_nonblocking(true).unwrap();
    let script = format!(
        r#"
import os, socket
def attempt(what, action):
    try: action(); print("reached", what)
    except OSError as error: pass
area = os.environ["AREA"]
def connect(family, kind, address):
    return lambda: socket.socket(family, kind).connect(address)
def send(family, address):
    return lambda: socket.socket(family, socket.SOCK_DGRAM).sendto(b"x", address)
attempt("tcp", connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", {tcp})))
attempt("udp", send(socket.AF_INET, ("127.0.0.1", {udp})))
attempt("path", connect(socket.AF_UNIX, socket.SOCK_STREAM, area + "/other/socket"))
attempt("datagrams", send(socket.AF_UNIX, area + "/other/datagrams"))
attempt("abstract", connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0{name}"))
for kind in (socket.SOCK_DGRAM, socket.SOCK_RAW):
    attempt("pair", lambda: socket.socketpair(socket.AF_UNIX, kind)[0].sendto(b"x", area + "/other/datagrams"))
a, b = socket.socketpair()
attempt("connect", lambda: a.connect(area + "/other/socket"))
attempt("sendto", lambda: a.sendto(b"x", area + "/other/datagrams") and b.recv(1) != b"x" or 1 / 0)
a.sendall(b"pairs work"); print(b.recv(20).decode()[-10:])
attempt("dns", lambda: socket.getaddrinfo("example.com", 80))
for family in range(46):
    for kind in range(1, 7): attempt((family, kind), lambda: socket.socket(family, kind))
"#,
        tcp = tcp.local_addr().unwrap().port(),
        udp = udp.local_addr().unwrap().port(),
    )
    .replace(
        "and b.recv(1) != b\"x\" or 1 / 0",
        "and (_ for _ in ()).throw(OSError())",
    );
    area.prints(area.python(&script), "pairs work").await;
    assert!(tcp.accept().is_err() && udp.recv(&mut [0]).is_err());
    assert!(by_path.accept().is_err() && abstract_.accept().is_err());
    assert!(datagrams.recv(&mut [0]).is_err());
    let script = format!(
        "exec 2>/dev/null; echo x > /dev/tcp/127.0.0.1/{} && echo reached; echo done",
        tcp.local_addr().unwrap().port()
    );
    area.prints(area.bash(&script), "done").await;
    assert!(tcp.accept().is_err());
}

/// The databases of the service, where they listen by path.
#[tokio::test]
async fn no_database_is_reached_by_its_path() {
    let area = Area::new();
    let names = [".s.PGSQL.5432", "redis.sock"];
    let listeners = names.map(|name| UnixListener::bind(area.path("other").join(name)).unwrap());
    let script = format!(
        r#"
import os, socket
for name in {names:?}:
    path = os.environ["AREA"] + "/other/" + name
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try: socket.socket(socket.AF_UNIX, kind).connect(path); print("reached", name)
        except PermissionError: pass
    try: os.link(path, name); print("linked", name)
    except OSError: pass
    try: open(path, "r+"); print("opened", name)
    except OSError: pass
print("done")"#
    );
    area.prints(area.python(&script), "done").await;
    for listener in listeners {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    }
}

/// The host's own daemons.
#[tokio::test]
async fn no_socket_of_the_host_is_reached() {
    let area = Area::new();
    let sockets = [
        "/run/docker.sock",
        "/var/run/docker.sock",
        "/run/systemd/private",
        "/run/dbus/system_bus_socket",
        "/dev/log",
    ];
    let script = format!(
        "import socket\nfor path in {sockets:?}:\n  for kind in (1, 2, 5):\n    try: socket.socket(1, kind).connect(path); print(path)\n    except OSError: pass\nprint('done')"
    );
    assert!(Path::new("/run").is_dir());
    area.prints(area.python(&script), "done").await;
}
