//! The byte stream of one HTTP/1.1 connection. It closes once the peer has read the last response.
//!
//! hyper rejects an unreadable request with a response of its own, which has no body and can't be
//! changed. It does so only while no response is in flight, which [`Exchange`] tracks. So such
//! bytes are recognised and discarded here, and `server.rs` responds with a problem instead.
//!
//! The stream below is a socket, or TLS over one. Connections of HTTP/2 have no such wrapper: their
//! protocol reports errors in frames.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

/// How long closing waits for the peer.
const LINGER: Duration = Duration::from_secs(2);
/// How many bytes closing reads and discards.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// A connection that recognises unreadable requests, and closes without losing a response.
#[derive(Debug)]
pub(super) struct Connection<S> {
    stream: S,
    exchange: Exchange,
    closing: Option<Closing>,
}

#[derive(Debug)]
struct Closing {
    deadline: Pin<Box<Sleep>>,
    read: usize,
}

impl<S> Connection<S> {
    /// Wraps a stream.
    pub(super) fn new(stream: S, exchange: Exchange) -> Self {
        Self {
            stream,
            exchange,
            closing: None,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Connection<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Connection<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.exchange.is_idle() {
            return Poll::Ready(Ok(bytes.len()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.exchange.is_idle() {
            return Poll::Ready(Ok(bytes.iter().map(|slice| slice.len()).sum()));
        }
        Pin::new(&mut self.stream).poll_write_vectored(cx, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper calls this after it has written all its bytes.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.exchange.written();
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Shuts the sending half down, then reads until the peer closes too. Closing with unread bytes
    /// would reset the connection, and the peer would lose an early response such as 413.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.closing.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let deadline = Instant::now() + LINGER;
        let closing = this.closing.get_or_insert_with(|| Closing {
            deadline: Box::pin(tokio::time::sleep_until(deadline)),
            read: 0,
        });
        let mut scratch = [0; 8 * 1024];
        while closing.read < LINGER_BYTES && closing.deadline.as_mut().poll(cx).is_pending() {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut this.stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() => closing.read += buffer.filled().len(),
                Poll::Ready(_) => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// Tracks whether a response is in flight on a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange(Arc<AtomicU8>);

/// No request is in progress, and the whole last response was written.
const IDLE: u8 = 0;
/// A request or the making of its response is in progress.
const ANSWERING: u8 = 1;
/// The whole response was made, but may not be written yet.
const MADE: u8 = 2;

impl Exchange {
    /// Marks the beginning: a request was read, or is refused.
    pub(super) fn begin(&self) {
        self.0.store(ANSWERING, Ordering::Relaxed);
    }

    /// Returns whether no response is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IDLE
    }

    /// Marks the end, if the response was made: its bytes are written.
    pub(super) fn written(&self) {
        // A response that is not complete yet is written later.
        let _ = self
            .0
            .compare_exchange(MADE, IDLE, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The body of a response. Its drop marks the response as made.
#[derive(Debug)]
pub(super) struct ExchangeBody {
    body: Body,
    exchange: Exchange,
}

impl ExchangeBody {
    /// Wraps the body of the exchange's response.
    pub(super) fn new(body: Body, exchange: Exchange) -> Self {
        Self { body, exchange }
    }
}

impl HttpBody for ExchangeBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ExchangeBody {
    fn drop(&mut self) {
        self.exchange.0.store(MADE, Ordering::Relaxed);
    }
}
