//! A local HTTP server that responds as a test scripts and retains its requests: the provider's
//! side of a model call.

use std::collections::{HashSet, VecDeque};
use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit};
use axum::http::{HeaderMap, Response, Uri};
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::gate::Gate;
use crate::model_requests::check_requests;

/// A request that came in.
#[derive(Debug, Clone)]
pub struct Captured {
    pub path: String,
    /// The query of the address, without `?`; empty if the address has none.
    pub query: String,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Captured {
    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// A part of a response's body.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Bytes, sent at once.
    Bytes(Vec<u8>),
    /// Waits before the next part.
    Wait(Duration),
    /// Waits until the gate lets it pass.
    Gate(Arc<Gate>),
    /// Sends nothing more and holds the connection.
    Hang,
    /// Breaks the connection.
    Abort,
}

/// A response.
#[derive(Debug, Clone)]
#[must_use]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub pieces: Vec<Piece>,
}

impl Reply {
    /// Makes a response of one piece.
    pub fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        let pieces = vec![Piece::Bytes(body.into())];
        Self {
            status,
            headers,
            pieces,
        }
    }

    /// Makes a JSON response.
    pub fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    /// Makes a stream of server-sent events.
    pub fn events(body: impl Into<Vec<u8>>) -> Self {
        Self::new(200, "text/event-stream", body)
    }

    /// Cuts the body into pieces of a size.
    pub fn in_pieces(mut self, size: usize) -> Self {
        let cut = self.pieces.into_iter().flat_map(|piece| match piece {
            Piece::Bytes(bytes) => bytes.chunks(size).map(|chunk| Piece::Bytes(chunk.to_vec())).collect(),
            other => vec![other],
        });
        self.pieces = cut.collect();
        self
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Puts something before the body.
    pub fn after(mut self, piece: Piece) -> Self {
        self.pieces.insert(0, piece);
        self
    }

    /// Adds a part of the body.
    pub fn then(mut self, piece: Piece) -> Self {
        self.pieces.push(piece);
        self
    }
}

/// The server. When dropped it stops, and fails the test if a request broke a promise of all
/// requests.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

/// Chooses the response to a request.
type Answerer = Box<dyn FnMut(&Captured) -> Reply + Send>;

struct State {
    answerer: Answerer,
    captured: Vec<Captured>,
    peers: HashSet<SocketAddr>,
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State").finish_non_exhaustive()
    }
}

impl ModelServer {
    /// Starts a server that gives the responses in their order, to any request, and 500 after the
    /// last.
    pub async fn start(replies: Vec<Reply>) -> Self {
        let mut replies = VecDeque::from(replies);
        Self::answering(move |_| {
            let reply = replies.pop_front();
            reply.unwrap_or_else(|| Reply::new(500, "text/plain", "no reply is left"))
        })
        .await
    }

    /// Starts a server that responds to each request with the function.
    pub async fn answering(answerer: impl FnMut(&Captured) -> Reply + Send + 'static) -> Self {
        let state = Arc::new(Mutex::new(State {
            answerer: Box::new(answerer),
            captured: Vec::new(),
            peers: HashSet::new(),
        }));
        let shared = Arc::clone(&state);
        let handler = move |ConnectInfo(peer): ConnectInfo<SocketAddr>, uri: Uri, headers: HeaderMap, body: Bytes| {
            let mut state = shared.lock().unwrap();
            state.peers.insert(peer);
            let request = Captured {
                path: uri.path().to_owned(),
                query: uri.query().unwrap_or_default().to_owned(),
                headers,
                body: body.to_vec(),
            };
            state.captured.push(request.clone());
            let reply = (state.answerer)(&request);
            std::future::ready(Ok::<_, Infallible>(response(reply)))
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new()
            .fallback(handler)
            .layer(DefaultBodyLimit::disable())
            .into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, state, task }
    }

    /// Returns an address of the server with a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns how many connections have brought requests.
    pub fn connections(&self) -> usize {
        self.state.lock().unwrap().peers.len()
    }

    /// Returns how many requests have come in.
    pub fn asked(&self) -> usize {
        self.state.lock().unwrap().captured.len()
    }

    /// Returns the requests so far.
    pub fn captured(&self) -> Vec<Captured> {
        self.state.lock().unwrap().captured.clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.task.abort();
        if !std::thread::panicking() {
            let bodies: Vec<_> = self.captured().into_iter().map(|request| request.body).collect();
            check_requests(&bodies);
        }
    }
}

fn response(reply: Reply) -> Response<Body> {
    let mut response = Response::builder().status(reply.status);
    for (name, value) in reply.headers {
        response = response.header(name, value);
    }
    let body = stream::iter(reply.pieces).filter_map(|piece| async {
        match piece {
            Piece::Bytes(bytes) => Some(Ok(Bytes::from(bytes))),
            Piece::Wait(time) => {
                tokio::time::sleep(time).await;
                None
            }
            Piece::Gate(gate) => {
                gate.pass().await;
                None
            }
            Piece::Hang => std::future::pending().await,
            Piece::Abort => Some(Err(io::Error::other("told to"))),
        }
    });
    response.body(Body::from_stream(body)).unwrap()
}
