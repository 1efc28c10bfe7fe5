//! The limits of HTTP/2, with frames that no HTTP library sends.

use std::time::Duration;

use test_support::wait::until;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::client::TlsStream;

use super::binary::PATIENCE;
use super::service::Service;
use super::tls::{Authority, connect, home_with};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HOST: &str = "127.0.0.1";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
/// The flags of a request without a body.
const END_STREAM_AND_HEADERS: u8 = 0x5;
const END_HEADERS: u8 = 0x4;
/// Methods and a status by their indexes.
const GET: u8 = 0x82;
const POST: u8 = 0x83;
const STATUS_200: u8 = 0x88;
const ENHANCE_YOUR_CALM: u8 = 0xb;
const INITIAL_WINDOW_SIZE: u8 = 4;

/// A connection of frames.
struct Frames(TlsStream<TcpStream>);

struct Frame {
    kind: u8,
    payload: Vec<u8>,
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Makes the head of a request `GET` of a path, without compression.
fn get(stream: u32, path: &str) -> Vec<u8> {
    frame(HEADERS, END_STREAM_AND_HEADERS, stream, &head(GET, path))
}

fn head(method: u8, path: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).unwrap();
    // The method and https by their indexes, then `:path` and `:authority` with values.
    let mut block = vec![method, 0x87, 0x04, length(path)];
    block.extend(path.bytes());
    block.extend([0x01, length(HOST)]);
    block.extend(HOST.bytes());
    block
}

impl Frames {
    async fn open(service: &Service, authority: &Authority, settings: &[u8]) -> Self {
        let stream = connect(&service.address, authority.trusting(None, b"h2")).await;
        let mut frames = Self(stream.unwrap());
        frames
            .send(&[PREFACE, &frame(SETTINGS, 0, 0, settings)].concat())
            .await
            .unwrap();
        frames
    }

    async fn send(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }

    /// Returns the next frame; `None` if the connection has ended.
    async fn next(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.0.read_exact(&mut payload).await.ok()?;
        Some(Frame { kind: head[3], payload })
    }

    /// Returns the first frame of a kind; `None` if the connection ends before.
    async fn find(&mut self, kind: u8) -> Option<Frame> {
        let finding = async {
            loop {
                let frame = self.next().await?;
                if frame.kind == kind {
                    return Some(frame);
                }
            }
        };
        timeout(PATIENCE, finding).await.expect("the connection stays open")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_resets_its_requests_at_once_is_disconnected() {
    let authority = Authority::new();
    let home = home_with(&authority.server());
    let service = Service::start(&home).await;
    let mut frames = Frames::open(&service, &authority, &[]).await;
    let resets = (0..5_000).flat_map(|number| {
        let stream = 2 * number + 1;
        [get(stream, "/healthz"), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])].concat()
    });
    // The service may end the connection before it has read all of them.
    let _ = frames.send(&resets.collect::<Vec<u8>>()).await;
    if let Some(goaway) = frames.find(GOAWAY).await {
        assert_eq!(goaway.payload[7], ENHANCE_YOUR_CALM);
    }
    let mut next = Frames::open(&service, &authority, &[]).await;
    next.send(&get(1, "/healthz")).await.unwrap();
    let headers = next.find(HEADERS).await.unwrap();
    assert_eq!(headers.payload[0], STATUS_200);
    service.stop().await;
}

/// One connection can't have more requests open than all connections of HTTP/1.1 together.
#[tokio::test]
async fn open_requests_are_limited_over_all_connections() {
    let authority = Authority::new();
    let home = home_with(&authority.server()).variable("AGENT_RUNTIME__HTTP__MAX_CONNECTIONS", "2");
    let service = Service::start(&home).await;
    let mut one = Frames::open(&service, &authority, &[]).await;
    let mut other = Frames::open(&service, &authority, &[]).await;
    // Their bodies do not come.
    let open = |stream| {
        // `content-type` by its index.
        let json = [&[0x0f, 0x10, 16], &b"application/json"[..]].concat();
        let block = [head(POST, "/v1/runs"), json].concat();
        frame(HEADERS, END_HEADERS, stream, &block)
    };
    one.send(&[open(1), open(3), open(5)].concat()).await.unwrap();
    // The third one is refused: a status without an index.
    assert_ne!(one.find(HEADERS).await.unwrap().payload[0], STATUS_200);
    other.send(&get(1, "/v1/me")).await.unwrap();
    assert_ne!(other.find(HEADERS).await.unwrap().payload[0], STATUS_200);
    other.send(&get(3, "/healthz")).await.unwrap();
    assert_eq!(other.find(HEADERS).await.unwrap().payload[0], STATUS_200);
    one.send(&frame(RST_STREAM, 0, 1, &[0, 0, 0, 8])).await.unwrap();
    let mut next = 3;
    until("the request is still counted", async || {
        next += 2;
        other.send(&get(next, "/v1/me")).await.unwrap();
        other.find(HEADERS).await.unwrap().payload[0] == STATUS_200
    })
    .await;
    service.stop().await;
}

#[tokio::test]
async fn a_client_that_takes_no_bytes_of_a_response_is_disconnected() {
    let authority = Authority::new();
    let home = home_with(&authority.server())
        .variable("AGENT_RUNTIME__HTTP__REQUEST_TIMEOUT", "500ms")
        .variable("AGENT_RUNTIME__HTTP__HEADER_TIMEOUT", "1m");
    let service = Service::start(&home).await;
    let closed = [0, INITIAL_WINDOW_SIZE, 0, 0, 0, 0];
    let mut frames = Frames::open(&service, &authority, &closed).await;
    frames.send(&get(1, "/openapi.json")).await.unwrap();
    assert!(frames.find(HEADERS).await.is_some());
    assert!(frames.find(u8::MAX).await.is_none());
    service.stop().await;
}

#[tokio::test]
async fn a_connection_without_requests_is_closed() {
    let authority = Authority::new();
    let home = home_with(&authority.server()).variable("AGENT_RUNTIME__HTTP__HEADER_TIMEOUT", "200ms");
    let service = Service::start(&home).await;
    let mut frames = Frames::open(&service, &authority, &[]).await;
    frames.send(&get(1, "/healthz")).await.unwrap();
    assert!(frames.find(GOAWAY).await.is_some());
    // The client acknowledges nothing, and the connection ends all the same.
    assert!(frames.find(u8::MAX).await.is_none());
    // A connection of which nothing comes at all.
    let mut silent = connect(&service.address, authority.trusting(None, b"h2"))
        .await
        .unwrap();
    let ended = timeout(PATIENCE, silent.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the connection stays open");
    service.stop().await;
}

#[tokio::test]
async fn a_shutdown_ends_connections_after_their_requests() {
    let authority = Authority::new();
    let home = home_with(&authority.server()).variable("AGENT_RUNTIME__HTTP__HEADER_TIMEOUT", "1m");
    let service = Service::start(&home).await;
    let mut frames = Frames::open(&service, &authority, &[]).await;
    frames.send(&get(1, "/healthz")).await.unwrap();
    assert!(frames.find(HEADERS).await.is_some());
    service.signal("TERM");
    assert!(frames.find(GOAWAY).await.is_some());
    let ended = service.end_within(Duration::from_secs(10)).await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
