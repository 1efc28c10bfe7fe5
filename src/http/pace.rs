//! A socket that disconnects a peer which reads slower than `http.min_transfer_rate`.
//!
//! It is below TLS, so that it counts what the peer really reads.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// A socket with a limit on slow peers.
#[derive(Debug)]
pub(super) struct PacedStream {
    stream: TcpStream,
    patience: Patience,
    /// When the pending write began, and the timer for its end.
    stalled: Option<(Instant, Pin<Box<Sleep>>)>,
    pace: Pace,
}

/// The limits on a peer while bytes wait for it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// How long the peer may read nothing, and how often its rate is checked.
    pub(super) window: Duration,
    /// The bytes per second that the peer must read.
    pub(super) least_rate: u64,
}

impl Patience {
    /// Returns the bytes that the peer must read in a window.
    pub(super) fn least_bytes(self) -> u64 {
        let bytes = u128::from(self.least_rate) * self.window.as_millis() / 1_000;
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// Measures how fast the peer reads. Counts only the time in which bytes wait for the peer.
#[derive(Debug, Default)]
struct Pace {
    waited: Duration,
    read: u64,
}

impl PacedStream {
    /// Wraps a socket.
    pub(super) fn new(stream: TcpStream, patience: Patience) -> Self {
        Self {
            stream,
            patience,
            stalled: None,
            pace: Pace::default(),
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

impl AsyncRead for PacedStream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for PacedStream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.watch(cx, progress)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let progress = Pin::new(&mut self.stream).poll_write_vectored(cx, bytes);
        self.watch(cx, progress)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
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
