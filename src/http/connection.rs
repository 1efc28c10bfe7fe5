//! The byte stream of one connection. It disconnects a peer that reads slower than
//! `http.min_transfer_rate`, and closes once the peer has read the last response.
//!
//! hyper rejects an unreadable request with a response of its own, which has no body and can't be
//! changed. It does so only while no response is in flight, which [`Exchange`] tracks. So such
//! bytes are recognised and discarded here, and `server.rs` responds with a problem instead.

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
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// How long closing waits for the peer.
const LINGER: Duration = Duration::from_secs(2);
/// How many bytes closing reads and discards.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// A connection with a limit on slow and silent peers.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    exchange: Exchange,
    patience: Patience,
    /// When the pending write began, and the timer for its end.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
    pace: Pace,
    closing: Option<Closing>,
}

/// The limits on a peer while bytes wait for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// How long the peer may read nothing, and how often its rate is checked.
    pub(super) window: Duration,
    /// The bytes per second that the peer must read.
    pub(super) least_rate: u64,
}

/// Measures how fast the peer reads. Counts only the time in which bytes wait for the peer.
#[derive(Debug, Default)]
struct Pace {
    waited: Duration,
    read: u64,
}

#[derive(Debug)]
struct Closing {
    deadline: Pin<Box<Sleep>>,
    read: usize,
}

impl Connection {
    /// Wraps a connection.
    pub(super) fn new(stream: TcpStream, exchange: Exchange, patience: Patience) -> Self {
        Self {
            stream,
            exchange,
            patience,
            stalled: None,
            pace: Pace::default(),
            closing: None,
        }
    }

    /// Turns a write into an error if it is pending for too long, or if the peer reads too slowly.
    fn watch(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match progress {
            Poll::Ready(Ok(bytes)) => {
                let waited = self.stalled.take().map_or(Duration::ZERO, |(since, _)| since.elapsed());
                if self.pace.is_too_slow(waited, bytes as u64, self.patience) {
                    return Poll::Ready(Err(given_up("the peer reads too slowly")));
                }
            }
            Poll::Ready(Err(_)) => self.stalled = None,
            Poll::Pending => {
                let window = self.patience.window;
                let begin = || (Instant::now(), Box::pin(tokio::time::sleep(window)));
                let (_, stalled) = self.stalled.get_or_insert_with(begin);
                if stalled.as_mut().poll(cx).is_ready() {
                    return Poll::Ready(Err(given_up("the peer does not read")));
                }
            }
        }
        progress
    }
}

impl Pace {
    /// Counts the bytes that the peer has read after a wait. Returns whether they are too few for a
    /// window of waiting.
    fn is_too_slow(&mut self, waited: Duration, read: u64, patience: Patience) -> bool {
        self.waited += waited;
        self.read += read;
        if self.waited < patience.window {
            return false;
        }
        let Self { waited, read } = std::mem::take(self);
        u128::from(read) * 1_000 < u128::from(patience.least_rate) * waited.as_millis()
    }
}

fn given_up(words: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, words)
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.exchange.is_idle() {
            return Poll::Ready(Ok(bytes.len()));
        }
        let progress = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.exchange.is_idle() {
            return Poll::Ready(Ok(bytes.iter().map(|slice| slice.len()).sum()));
        }
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch(cx, progress)
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

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        window: Duration::from_secs(10),
        least_rate: 1_000,
    };

    #[test]
    fn a_peer_that_reads_too_little_while_bytes_wait_is_too_slow() {
        let mut pace = Pace::default();
        // The bytes that fit into the buffers of the connection count once.
        assert!(!pace.is_too_slow(Duration::ZERO, 1_000_000, PATIENCE));
        for _ in 0..10 {
            assert!(!pace.is_too_slow(Duration::from_secs(1), 10, PATIENCE));
        }
        for _ in 0..9 {
            assert!(!pace.is_too_slow(Duration::from_secs(1), 999, PATIENCE));
        }
        assert!(pace.is_too_slow(Duration::from_secs(1), 999, PATIENCE));
        for _ in 0..100 {
            assert!(!pace.is_too_slow(Duration::from_secs(1), 1_000, PATIENCE));
        }
    }

    #[test]
    fn a_peer_for_whom_nothing_waits_is_never_too_slow() {
        let mut pace = Pace::default();
        for _ in 0..1_000 {
            assert!(!pace.is_too_slow(Duration::ZERO, 1, PATIENCE));
        }
    }
}
