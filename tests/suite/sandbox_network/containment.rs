//! Ways out of the sandbox that do not lead through the proxy.

use std::io::Read as _;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::time::Duration;

use sandbox::{Exit, NetworkSlot};
use test_support::raw_server::{RawReply, RawServer};

use super::{World, proxy_for};

/// Prints one line for each way out: its name, and the error number or what came of it.
const WAYS: &str = r#"
import socket, ctypes, os, errno, struct, sys
tcp, other, udp, path, name = sys.argv[1:6]

def tried(label, way):
    try:
        print(label, "open", way() or "")
    except OSError as error:
        print(label, errno.errorcode.get(error.errno, error))

def connect(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.settimeout(5)
        s.connect(address)

def fast_open(address):
    with socket.socket() as s:
        s.settimeout(5)
        s.sendto(b"x", socket.MSG_FASTOPEN, address)

def pair_again(kind, address):
    a, b = socket.socketpair(socket.AF_UNIX, kind)
    b.close()
    a.connect(address)

def send_file():
    a, b = socket.socketpair()
    socket.send_fds(a, [b"x"], [0])

def bind(address):
    with socket.socket() as s:
        s.bind(address)

four, six = socket.AF_INET, socket.AF_INET6
tried("proxy", lambda: connect(four, ("127.0.0.1", 3128)))
tried("loopback", lambda: connect(four, ("127.0.0.1", int(tcp))))
tried("any", lambda: connect(four, ("0.0.0.0", int(tcp))))
tried("same-port", lambda: connect(four, ("127.0.0.2", 3128)))
tried("host", lambda: connect(four, (other, 3128)))
tried("public", lambda: connect(four, ("1.1.1.1", 443)))
tried("public-same-port", lambda: connect(four, ("1.1.1.1", 3128)))
tried("metadata", lambda: connect(four, ("169.254.169.254", 80)))
tried("six", lambda: connect(six, ("::1", int(tcp))))
tried("six-same-port", lambda: connect(six, ("::1", 3128)))
tried("six-mapped", lambda: connect(six, ("::ffff:127.0.0.1", int(tcp))))
tried("six-public", lambda: connect(six, ("2606:4700:4700::1111", 3128)))
tried("fast-open", lambda: fast_open(("127.0.0.1", int(tcp))))
tried("udp", lambda: connect(four, ("127.0.0.1", int(udp)), socket.SOCK_DGRAM))
tried("udp-six", lambda: connect(six, ("::1", int(udp)), socket.SOCK_DGRAM))
tried("raw", lambda: connect(four, ("127.0.0.1", 0), socket.SOCK_RAW))
tried("mptcp", lambda: socket.socket(four, socket.SOCK_STREAM, 262))
tried("sctp", lambda: socket.socket(four, socket.SOCK_STREAM, 132))
tried("packet", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW))
tried("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0))
tried("vsock", lambda: connect(socket.AF_VSOCK, (2, 1)))
tried("alg", lambda: socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET))
tried("unix", lambda: connect(socket.AF_UNIX, path))
tried("abstract", lambda: connect(socket.AF_UNIX, "\0" + name))
tried("unix-datagram", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
tried("pair", lambda: pair_again(socket.SOCK_STREAM, path))
tried("pair-abstract", lambda: pair_again(socket.SOCK_SEQPACKET, "\0" + name))
tried("file", send_file)
tried("server", lambda: bind(("127.0.0.1", 0)))

libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(number, *arguments) == -1:
        raise OSError(ctypes.get_errno(), "")
tried("io_uring", lambda: call(425, 8, ctypes.create_string_buffer(120)))
tried("setns", lambda: call(308, os.open("/dev/null", os.O_RDONLY), 0))
tried("unshare", lambda: call(272, 0x40000000))
tried("unshare-user", lambda: call(272, 0x10000000))

def dns():
    socket.setdefaulttimeout(5)
    try:
        return socket.getaddrinfo("example.org", 443)
    except socket.gaierror as error:
        raise OSError(errno.ENOENT, str(error))
tried("dns", dns)
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_but_the_proxy_can_be_reached() {
    let Some(world) = World::new(proxy_for(&["127.0.0.1"])).await else {
        return;
    };
    // What a command would reach, if it could.
    let tcp = TcpListener::bind("[::]:0").unwrap();
    tcp.set_nonblocking(true).unwrap();
    let udp = UdpSocket::bind("[::]:0").unwrap();
    udp.set_nonblocking(true).unwrap();
    let path = world.path("files").join("socket");
    let by_path = UnixListener::bind(&path).unwrap();
    let name = format!("agent-runtime-test-{}", std::process::id());
    let by_name = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
    for listener in [&by_path, &by_name] {
        listener.set_nonblocking(true).unwrap();
    }
    let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
    let ended = world
        .run(
            "/usr/bin/python3",
            &[
                "-c",
                WAYS,
                &tcp_port.to_string(),
                "192.0.2.1",
                &udp_port.to_string(),
                path.to_str().unwrap(),
                &name,
            ],
        )
        .await;
    assert_eq!(ended.exit, Exit::Code(0), "{}", ended.text);
    let mut lines = ended.text.lines();
    assert_eq!(lines.next().unwrap().trim(), "proxy open", "{}", ended.text);
    // Landlock and seccomp refuse most, and the network leads nowhere.
    let errors = [
        "EPERM",
        "EACCES",
        "ENOSYS",
        "ENOENT",
        "EISCONN",
        "ECONNREFUSED",
        "ENETUNREACH",
    ];
    let (refused, others): (Vec<_>, Vec<_>) = lines.partition(|line| errors.iter().any(|error| line.ends_with(error)));
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(refused.len(), 33, "{}", ended.text);
    assert!(tcp.accept().is_err() && by_path.accept().is_err() && by_name.accept().is_err());
    assert!(udp.recv_from(&mut [0; 16]).is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_command_can_not_use_the_proxy_of_another() {
    let Some(world) = World::new(proxy_for(&["127.0.0.1"])).await else {
        return;
    };
    let server = RawServer::start(|_| RawReply::text("permitted")).await;
    let url = server.url("/");
    let fetch = ["-sS", "--max-time", "5", url.as_str()];
    // Its own network has nobody who listens, while that of the other command is served.
    let other = world.run("/bin/sleep", &["3"]);
    let without = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let alone = world.run_alone(world.spec("/usr/bin/curl", &fetch)).await;
        // The service holds the listener and does not serve it: the connection waits in vain.
        let mut unserved = world.spec("/usr/bin/curl", &["-sS", "--max-time", "1", &url]);
        let (slot, _listener) = NetworkSlot::new();
        unserved.network = Some(slot);
        (alone, world.run_alone(unserved).await)
    };
    let (other, (alone, unserved)) = tokio::join!(other, without);
    assert_eq!(other.exit, Exit::Code(0));
    for ended in [alone, unserved] {
        assert!(!matches!(ended.exit, Exit::Code(0)), "{}", ended.text);
    }
    assert!(server.requests().is_empty());
    // And nothing listens on the host itself.
    let mut text = String::new();
    std::fs::File::open("/proc/net/tcp")
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    assert!(!text.contains("0100007F:0C38 00000000:0000 0A"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_without_network_can_make_no_socket() {
    let Some(world) = World::new(proxy_for(&["127.0.0.1"])).await else {
        return;
    };
    let program = "import socket\ntry: socket.socket()\nexcept PermissionError: print('refused')";
    let ended = world.run_alone(world.spec("/usr/bin/python3", &["-c", program])).await;
    assert_eq!(ended.text, "refused\n");
}
