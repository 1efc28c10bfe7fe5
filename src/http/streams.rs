//! The responses of one HTTP/2 connection: whether there are any, and whether the peer reads them.
//!
//! A peer of HTTP/2 can read from its socket and still stop single responses, since each stream has
//! a window of its own. Then their bytes stay in this process. So each response counts the bytes
//! that wait for the peer, until h2 has written them.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use bytes::Buf;
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::sleep;

use super::pace::Patience;

/// How many entries are listed before those of ended streams are removed. A connection has at most
/// half as many streams at once.
const MAX_LISTED: usize = 256;

/// The streams of a connection.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<Listed>);

#[derive(Debug, Default)]
struct Listed {
    streams: Vec<Weak<Stream>>,
    /// Whether a stream has begun since the last check.
    has_begun: bool,
}

/// A request and its response.
#[derive(Debug)]
pub(super) struct Stream {
    _permit: Option<OwnedSemaphorePermit>,
    /// The bytes that wait for the peer.
    waiting: AtomicUsize,
    /// The bytes that were written since the last check.
    written: AtomicU64,
    /// Whether no byte has waited at some time since the last check.
    was_free: AtomicBool,
}

impl Streams {
    /// Counts a stream until its last byte is written. Then its permit is released.
    pub(super) fn begin(&self, permit: Option<OwnedSemaphorePermit>) -> Arc<Stream> {
        let stream = Arc::new(Stream {
            _permit: permit,
            waiting: AtomicUsize::new(0),
            written: AtomicU64::new(0),
            was_free: AtomicBool::new(true),
        });
        let mut listed = self.0.lock();
        if listed.streams.len() >= MAX_LISTED {
            listed.streams.retain(|stream| stream.strong_count() > 0);
        }
        listed.streams.push(Arc::downgrade(&stream));
        listed.has_begun = true;
        stream
    }

    /// Waits until there has been no stream for a period, give or take another one.
    pub(super) async fn until_unused(&self, period: Duration) {
        loop {
            sleep(period).await;
            let mut listed = self.0.lock();
            listed.streams.retain(|stream| stream.strong_count() > 0);
            let has_begun = std::mem::take(&mut listed.has_begun);
            if listed.streams.is_empty() && !has_begun {
                return;
            }
        }
    }

    /// Waits until the peer reads a response too slowly.
    pub(super) async fn until_too_slow(&self, patience: Patience) {
        loop {
            sleep(patience.window).await;
            if self.has_too_slow(patience) {
                return;
            }
        }
    }

    /// Returns whether bytes of a response have waited for the peer since the last check, and the
    /// peer has read too few of them. The streams of a connection share the rate.
    fn has_too_slow(&self, patience: Patience) -> bool {
        let streams: Vec<_> = self.0.lock().streams.iter().filter_map(Weak::upgrade).collect();
        let stalled: Vec<u64> = streams
            .iter()
            .filter_map(|stream| stream.written_while_waiting())
            .collect();
        let share = patience.least_bytes() / (stalled.len() as u64).max(1);
        stalled.iter().any(|written| *written < share.max(1))
    }
}

impl Stream {
    /// Begins a new window. Returns the bytes that were written in the last one; `None` if at some
    /// time in it none waited.
    fn written_while_waiting(&self) -> Option<u64> {
        let written = self.written.swap(0, Ordering::Relaxed);
        let is_free = self.waiting.load(Ordering::Relaxed) == 0;
        let was_free = self.was_free.swap(is_free, Ordering::Relaxed);
        (!was_free && !is_free).then_some(written)
    }

    fn release(&self, bytes: usize) {
        if self.waiting.fetch_sub(bytes, Ordering::Relaxed) == bytes {
            self.was_free.store(true, Ordering::Relaxed);
        }
    }
}

/// The body of a response over HTTP/2.
#[derive(Debug)]
pub(super) struct StreamBody {
    body: Body,
    stream: Arc<Stream>,
}

impl StreamBody {
    /// Wraps the body of the stream's response.
    pub(super) fn new(body: Body, stream: Arc<Stream>) -> Self {
        Self { body, stream }
    }
}

impl HttpBody for StreamBody {
    type Data = WaitingBytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<WaitingBytes>, axum::Error>>> {
        let this = &mut *self;
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        polled.map_ok(|frame| frame.map_data(|bytes| WaitingBytes::new(bytes, &this.stream)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Bytes that wait for the peer until h2 writes or drops them.
#[derive(Debug)]
pub(super) struct WaitingBytes {
    bytes: Bytes,
    stream: Arc<Stream>,
}

impl WaitingBytes {
    fn new(bytes: Bytes, stream: &Arc<Stream>) -> Self {
        stream.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        Self {
            bytes,
            stream: Arc::clone(stream),
        }
    }
}

impl Buf for WaitingBytes {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, count: usize) {
        self.bytes.advance(count);
        self.stream.written.fetch_add(count as u64, Ordering::Relaxed);
        self.stream.release(count);
    }
}

impl Drop for WaitingBytes {
    fn drop(&mut self) {
        if !self.bytes.is_empty() {
            self.stream.release(self.bytes.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Patience = Patience {
        window: Duration::from_secs(10),
        least_rate: 100,
    };

    #[test]
    fn a_response_of_which_too_little_is_read_is_too_slow() {
        let streams = Streams::default();
        let stream = streams.begin(None);
        assert!(!streams.has_too_slow(PATIENCE));
        let mut bytes = WaitingBytes::new(Bytes::from(vec![0; 10_000]), &stream);
        // The first window has begun without it.
        assert!(!streams.has_too_slow(PATIENCE));
        bytes.advance(1_000);
        assert!(!streams.has_too_slow(PATIENCE));
        bytes.advance(999);
        assert!(streams.has_too_slow(PATIENCE));
        drop(bytes);
        assert!(!streams.has_too_slow(PATIENCE));
    }

    #[test]
    fn responses_share_the_rate_but_none_may_stop() {
        let streams = Streams::default();
        let begin = || WaitingBytes::new(Bytes::from(vec![0; 10_000]), &streams.begin(None));
        let (mut one, mut other) = (begin(), begin());
        assert!(!streams.has_too_slow(PATIENCE));
        one.advance(500);
        other.advance(500);
        assert!(!streams.has_too_slow(PATIENCE));
        one.advance(5_000);
        assert!(streams.has_too_slow(PATIENCE));
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_is_unused_after_its_last_stream() {
        let streams = Streams::default();
        let stream = streams.begin(None);
        let period = Duration::from_secs(1);
        let mut unused = std::pin::pin!(streams.until_unused(period));
        assert!(tokio::time::timeout(period * 10, &mut unused).await.is_err());
        drop(stream);
        unused.await;
    }
}
