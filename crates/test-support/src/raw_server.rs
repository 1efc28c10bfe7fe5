//! An HTTP server that replies with bytes, so that a reply may be wrong, endless or slow.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// The bytes of a reply, and what follows them.
#[derive(Debug, Clone)]
#[must_use]
pub struct RawReply {
    bytes: Vec<u8>,
    then: Then,
}

#[derive(Debug, Clone)]
enum Then {
    Close,
    Hang,
    Repeat(Vec<u8>),
}

impl RawReply {
    /// Replies with these bytes and closes the connection.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            bytes: bytes.into(),
            then: Then::Close,
        }
    }

    /// Replies with a status, headers and a body of the declared length.
    pub fn new(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut reply = head(status, headers);
        reply.extend(format!("content-length: {}\r\n\r\n", body.len()).bytes());
        reply.extend(body);
        Self::bytes(reply)
    }

    /// Replies with 200 and a text.
    pub fn text(text: &str) -> Self {
        Self::new(200, &[("content-type", "text/plain")], text)
    }

    /// Redirects.
    pub fn redirect(status: u16, to: &str) -> Self {
        Self::new(status, &[("location", to)], "")
    }

    /// Sends nothing more after the bytes, and leaves the connection open until the client closes
    /// it.
    pub fn then_hang(self) -> Self {
        Self {
            then: Then::Hang,
            ..self
        }
    }

    /// Sends these bytes again and again after the first ones.
    pub fn then_repeat(self, bytes: impl Into<Vec<u8>>) -> Self {
        Self {
            then: Then::Repeat(bytes.into()),
            ..self
        }
    }
}

/// The beginning of a reply, without the empty line after the headers.
pub fn head(status: u16, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut head = format!("HTTP/1.1 {status} Words\r\nconnection: close\r\n");
    for (name, value) in headers {
        head.extend([name, ": ", value, "\r\n"]);
    }
    head.into_bytes()
}

/// A request as it came, byte for byte.
#[derive(Debug, Clone)]
pub struct RawRequest {
    pub head: String,
    pub body: String,
}

impl RawRequest {
    /// Returns the method, the path and the query.
    pub fn line(&self) -> &str {
        let line = self.head.lines().next().unwrap();
        line.strip_suffix(" HTTP/1.1").unwrap()
    }

    /// Returns a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines
            .find(|(other, _)| other.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }
}

/// The running server; it stops when it is dropped.
#[derive(Debug)]
pub struct RawServer {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<RawRequest>>>,
    hangs: Arc<Hangs>,
    task: JoinHandle<()>,
}

/// How many replies hang or have hung.
#[derive(Debug, Default)]
struct Hangs {
    begun: AtomicUsize,
    /// Those whose connection the client has closed.
    closed: AtomicUsize,
}

impl RawServer {
    /// Starts a server that replies to each request by the function.
    pub async fn start(react: impl Fn(&RawRequest) -> RawReply + Send + Sync + 'static) -> Self {
        Self::start_on("127.0.0.1:0", react).await
    }

    /// Starts a server on an address of this machine.
    pub async fn start_on(address: &str, react: impl Fn(&RawRequest) -> RawReply + Send + Sync + 'static) -> Self {
        Self::serve(TcpListener::bind(address).await.unwrap(), react)
    }

    fn serve(listener: TcpListener, react: impl Fn(&RawRequest) -> RawReply + Send + Sync + 'static) -> Self {
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let hangs = Arc::<Hangs>::default();
        let (received, react, hanging) = (Arc::clone(&requests), Arc::new(react), Arc::clone(&hangs));
        let task = tokio::spawn(async move {
            loop {
                let (mut connection, _) = listener.accept().await.unwrap();
                let (received, react, hanging) = (Arc::clone(&received), Arc::clone(&react), Arc::clone(&hanging));
                tokio::spawn(async move {
                    let Some(request) = read(&mut connection).await else {
                        return;
                    };
                    received.lock().unwrap().push(request.clone());
                    reply(&mut connection, react(&request), &hanging).await;
                });
            }
        });
        Self {
            address,
            requests,
            hangs,
            task,
        }
    }

    /// Starts two servers on one port: the permitted host, `127.0.0.1`, and the internal one,
    /// `127.0.0.2`. They reply with `permitted` and `internal`.
    pub async fn permitted_and_internal() -> (Self, Self) {
        Self::permitted_with(|_| RawReply::text("permitted")).await
    }

    /// Starts the same two servers. The permitted one replies by the function.
    pub async fn permitted_with(
        react: impl Fn(&RawRequest) -> RawReply + Clone + Send + Sync + 'static,
    ) -> (Self, Self) {
        loop {
            let permitted = Self::start(react.clone()).await;
            let address = format!("127.0.0.2:{}", permitted.port());
            // Another process may have the port.
            if let Ok(listener) = TcpListener::bind(&address).await {
                let internal = Self::serve(listener, |_| RawReply::text("internal"));
                return (permitted, internal);
            }
        }
    }

    /// Returns a URL of the server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<RawRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns how many replies have begun to hang, and how many of their connections the client
    /// has closed.
    pub fn hangs(&self) -> (usize, usize) {
        let Hangs { begun, closed } = &*self.hangs;
        (begun.load(Ordering::SeqCst), closed.load(Ordering::SeqCst))
    }

    /// Returns the method, the path and the query of each request so far.
    pub fn lines(&self) -> Vec<String> {
        self.requests()
            .iter()
            .map(|request| request.line().to_owned())
            .collect()
    }
}

impl Drop for RawServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a request; `None` if the connection ends before it.
async fn read(connection: &mut TcpStream) -> Option<RawRequest> {
    let mut bytes = Vec::new();
    let end = loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            break end + 4;
        }
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let mut request = RawRequest {
        head: String::from_utf8_lossy(&bytes[..end]).into_owned(),
        body: String::new(),
    };
    let length: usize = request
        .header("content-length")
        .map_or(0, |length| length.parse().unwrap());
    while bytes.len() < end + length {
        if connection.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    request.body = String::from_utf8_lossy(&bytes[end..]).into_owned();
    Some(request)
}

/// Sends a reply. The client may close the connection before its end.
async fn reply(connection: &mut TcpStream, reply: RawReply, hangs: &Hangs) {
    if connection.write_all(&reply.bytes).await.is_err() {
        return;
    }
    match reply.then {
        Then::Close => {
            let _ = connection.shutdown().await;
        }
        Then::Hang => {
            hangs.begun.fetch_add(1, Ordering::SeqCst);
            // The client sends nothing more, or breaks the connection.
            let _ = connection.read_to_end(&mut Vec::new()).await;
            hangs.closed.fetch_add(1, Ordering::SeqCst);
        }
        Then::Repeat(bytes) => while connection.write_all(&bytes).await.is_ok() {},
    }
}
