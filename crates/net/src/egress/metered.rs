//! A connection that counts its bytes and ends when it is silent for too long.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// The bytes that a command may still move.
#[derive(Debug)]
pub(super) struct Allowance(AtomicU64);

impl Allowance {
    pub(super) fn new(bytes: u64) -> Self {
        Self(AtomicU64::new(bytes))
    }

    /// Returns whether nothing is left.
    pub(super) fn is_spent(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }

    /// Takes off bytes that were moved. Fails if that spends the rest.
    fn spend(&self, bytes: usize) -> io::Result<()> {
        let left = self.0.update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            left.saturating_sub(bytes as u64)
        });
        if left > bytes as u64 {
            Ok(())
        } else {
            Err(io::Error::other("the command has moved as many bytes as it may"))
        }
    }
}

/// A metered connection.
#[derive(Debug)]
pub(super) struct Metered<S> {
    stream: S,
    allowance: Arc<Allowance>,
    idle_timeout: Duration,
    idle: Pin<Box<Sleep>>,
}

impl<S> Metered<S> {
    pub(super) fn new(stream: S, allowance: Arc<Allowance>, idle_timeout: Duration) -> Self {
        Self {
            stream,
            allowance,
            idle_timeout,
            idle: Box::pin(sleep(idle_timeout)),
        }
    }

    /// Counts bytes that were moved, or fails if nothing moves for too long.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        moved: Poll<io::Result<T>>,
        bytes: impl FnOnce(&T) -> usize,
    ) -> Poll<io::Result<T>> {
        match moved {
            Poll::Ready(Ok(done)) => {
                self.allowance.spend(bytes(&done))?;
                let until = Instant::now() + self.idle_timeout;
                self.idle.as_mut().reset(until);
                Poll::Ready(Ok(done))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => match self.idle.as_mut().poll(context) {
                Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
                Poll::Pending => Poll::Pending,
            },
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let moved = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        self.judge(context, moved, |()| bytes)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let moved = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, moved, |bytes| *bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
