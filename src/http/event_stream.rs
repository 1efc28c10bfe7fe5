//! Streams of server-sent events. A stream begins at once, and is never buffered or silent for
//! long.
//!
//! A stream ends early if the API key or the login of its reader is no longer valid. Each stream
//! reads the caches of both after a comment, and between events as often as comments would come.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::{Stream, StreamExt as _, stream};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::auth::Call;
use crate::metrics::OpenGuard;
use crate::run::read::LOGIN_ENDED;

/// The comment in a stream that would be silent otherwise.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// The next frames to send.
pub(super) struct NextFrames {
    pub(super) bytes: Bytes,
    /// Whether the stream ends after these.
    pub(super) is_last: bool,
}

/// Reads the frames of a stream.
pub(super) trait FrameReader: Send + 'static {
    /// Returns the next frames; `None` at an end without last ones.
    fn next(&mut self) -> impl Future<Output = Option<NextFrames>> + Send;

    /// Returns the last frames of a stream that ends early. A call of `next` may have been
    /// cancelled before.
    fn dropped(&mut self, reason: &'static str) -> impl Future<Output = Bytes> + Send;
}

/// Makes the response of a stream. A silent stream gets a comment after each interval.
pub(super) fn event_stream(call: Call, reader: impl FrameReader) -> Response {
    let login_ended = CancellationToken::new();
    let reading = Reading {
        reader,
        login_ended: login_ended.clone(),
        is_over: false,
    };
    let frames = stream::unfold(reading, |mut reading| async { Some((reading.next().await?, reading)) });
    let watched = Watched {
        frames: Box::pin(frames),
        next_check: Instant::now() + call.api.limits.keep_alive_interval,
        _open: call
            .api
            .runs
            .metrics
            .as_ref()
            .map(|metrics| metrics.http.stream_opened()),
        call,
        login_ended,
    };
    respond(stream::unfold(watched, |mut watched| async {
        Some((watched.next().await?, watched))
    }))
}

/// Makes the response of frames.
pub(super) fn respond(frames: impl Stream<Item = Bytes> + Send + 'static) -> Response {
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream")),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            HeaderName::from_static("x-accel-buffering"),
            HeaderValue::from_static("no"),
        ),
    ];
    let frames = frames.map(Ok::<_, Infallible>);
    (headers, Body::from_stream(frames)).into_response()
}

/// A stream with what checks its reader.
struct Watched<S> {
    frames: Pin<Box<S>>,
    call: Call,
    /// When the reader is checked again.
    next_check: Instant,
    /// Cancelled once the key or the login of the reader is no longer valid.
    login_ended: CancellationToken,
    /// Counts the stream.
    _open: Option<OpenGuard>,
}

impl<S: Stream<Item = Bytes> + Send> Watched<S> {
    /// Returns the next frames, or a comment after an interval without any, even while an event
    /// waits for room.
    async fn next(&mut self) -> Option<Bytes> {
        let interval = self.call.api.limits.keep_alive_interval;
        // Comes between two frames, so that no frame that was read is left unsent.
        if self.next_check <= Instant::now() {
            self.check(interval).await;
        }
        let next = timeout(interval, self.frames.next()).await;
        next.unwrap_or(Some(Bytes::from_static(KEEP_ALIVE)))
    }

    async fn check(&mut self, interval: Duration) {
        self.next_check = Instant::now() + interval;
        // Boxed, since a stream is rarely checked.
        if !Box::pin(self.call.is_valid()).await {
            self.login_ended.cancel();
        }
    }
}

/// A reader that can be dropped while it waits for its next frame.
struct Reading<R> {
    reader: R,
    login_ended: CancellationToken,
    is_over: bool,
}

impl<R: FrameReader> Reading<R> {
    async fn next(&mut self) -> Option<Bytes> {
        if self.is_over {
            return None;
        }
        let frames = tokio::select! {
            biased;
            () = self.login_ended.cancelled() => None,
            frames = self.reader.next() => Some(frames?),
        };
        self.is_over = frames.as_ref().is_none_or(|frames| frames.is_last);
        Some(match frames {
            Some(frames) => frames.bytes,
            None => self.reader.dropped(LOGIN_ENDED).await,
        })
    }
}
