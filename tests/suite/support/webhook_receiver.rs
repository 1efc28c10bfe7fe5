//! A receiver of webhooks over a real socket: it replies as a test scripts and retains every
//! message.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Response, Uri};
use futures_util::stream::{self, StreamExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use values::json::Value;

/// A reply of the receiver.
#[derive(Debug, Clone)]
pub(crate) enum Reaction {
    /// 200 with JSON.
    Json(Value),
    /// A status with a body.
    Status(u16, String),
    /// A status, once the token is cancelled.
    StatusAfter(u16, CancellationToken),
    /// A status with the header `Retry-After`.
    RetryAfter(u16, String),
    /// A redirect.
    Redirect(String),
    /// Nothing, ever.
    Hang,
    /// The beginning of a reply, and then nothing more.
    HangInside,
    /// The beginning of a reply, and then the end of the connection.
    Break,
}

/// A message that came in.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) raw: Vec<u8>,
}

impl Received {
    /// Returns the body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.raw).unwrap()
    }

    /// Returns the point that it is about.
    pub(crate) fn point(&self) -> String {
        self.json()["point"].as_str().unwrap().to_owned()
    }

    /// Returns a header that must be there.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers[name].to_str().unwrap()
    }
}

/// The running receiver; it stops when it is dropped.
#[derive(Debug)]
pub(crate) struct WebhookReceiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    task: JoinHandle<()>,
}

impl WebhookReceiver {
    /// Starts a receiver that reacts to each message with the function.
    pub(crate) async fn start(react: impl FnMut(&Received) -> Reaction + Send + 'static) -> Self {
        Self::start_on("127.0.0.1", react).await
    }

    /// Starts a receiver on another address of this machine, `127.0.0.N`, so that it counts as
    /// another host.
    pub(crate) async fn start_on(address: &str, react: impl FnMut(&Received) -> Reaction + Send + 'static) -> Self {
        let received = Arc::new(Mutex::new(Vec::new()));
        let (messages, react) = (Arc::clone(&received), Arc::new(Mutex::new(react)));
        let handler = move |uri: Uri, headers: HeaderMap, body: Bytes| {
            let message = Received {
                path: uri.path().to_owned(),
                headers,
                raw: body.to_vec(),
            };
            messages.lock().unwrap().push(message.clone());
            let reaction = react.lock().unwrap()(&message);
            async move { Ok::<_, Infallible>(response(reaction).await) }
        };
        let listener = TcpListener::bind((address, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(handler);
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            received,
            task,
        }
    }

    /// Starts a receiver that never wants a change.
    pub(crate) async fn content() -> Self {
        Self::start(|_| Reaction::Status(204, String::new())).await
    }

    /// Returns an address of the receiver with a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the port.
    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// Returns the messages so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Returns the points of the messages so far.
    pub(crate) fn points(&self) -> Vec<String> {
        self.received().iter().map(Received::point).collect()
    }
}

impl Drop for WebhookReceiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn response(reaction: Reaction) -> Response<Body> {
    let plain = |status: u16, body: String| Response::builder().status(status).body(Body::from(body)).unwrap();
    match reaction {
        Reaction::Json(value) => plain(200, value.to_string()),
        Reaction::Status(status, body) => plain(status, body),
        Reaction::StatusAfter(status, token) => {
            token.cancelled().await;
            plain(status, String::new())
        }
        Reaction::RetryAfter(status, when) => {
            let response = Response::builder().status(status).header("retry-after", when);
            response.body(Body::empty()).unwrap()
        }
        Reaction::Redirect(to) => {
            let response = Response::builder().status(307).header("location", to);
            response.body(Body::empty()).unwrap()
        }
        Reaction::Hang => std::future::pending().await,
        Reaction::HangInside => {
            let begun = stream::iter([Ok::<_, io::Error>(Bytes::from_static(b"{"))]);
            Response::new(Body::from_stream(begun.chain(stream::pending())))
        }
        Reaction::Break => {
            let broken = [Ok(Bytes::from_static(b"{")), Err(io::Error::other("told to"))];
            Response::new(Body::from_stream(stream::iter(broken)))
        }
    }
}
