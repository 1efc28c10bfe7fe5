//! The byte stream of one connection: a peer that stops reading is given up, and closing waits until the peer has read the last answer.

use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// How long closing waits for the peer.
const LINGER: Duration = Duration::from_secs(2);
/// How much closing reads and throws away.
const LINGER_BYTES: usize = 64 * 1024 * 1024;

/// A connection that a slow or silent peer can't hold for ever.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// How long a write may make no progress.
    write_timeout: Duration,
    stalled: Option<Pin<Box<Sleep>>>,
    closing: Option<Closing>,
}

#[derive(Debug)]
struct Closing {
    deadline: Pin<Box<Sleep>>,
    read: usize,
}

impl Connection {
    /// Wraps a connection.
    pub(super) fn new(stream: TcpStream, write_timeout: Duration) -> Self {
        Self {
            stream,
            write_timeout,
            stalled: None,
            closing: None,
        }
    }

    /// Turns a write that has been pending for too long into an error.
    fn watch<T>(&mut self, cx: &mut Context<'_>, progress: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if progress.is_ready() {
            self.stalled = None;
            return progress;
        }
        let timeout = self.write_timeout;
        let stalled = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the peer does not read"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Connection {
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

    /// Ends the sending half, then reads on until the peer ends too: to close with unread bytes would reset the connection, and the
    /// peer would lose an answer such as 413 that was sent before its body had arrived.
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
