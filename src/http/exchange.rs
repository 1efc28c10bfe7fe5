//! Tracks whether a response is in flight on a connection. This tells hyper's own rejections from
//! the service's responses.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::{Frame, SizeHint};

/// Whether a response is under way on a connection.
#[derive(Debug, Clone, Default)]
pub(super) struct Exchange(Arc<AtomicU8>);

/// No request is at work, and all of the last response was written.
const IDLE: u8 = 0;
/// A request is at work, or its response is being made.
const ANSWERING: u8 = 1;
/// All of the response was made, and perhaps not yet written.
const MADE: u8 = 2;

impl Exchange {
    /// Begins with a request that was read, or with a refusal.
    pub(super) fn begin(&self) {
        self.0.store(ANSWERING, Ordering::Relaxed);
    }

    /// Returns whether no response is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Relaxed) == IDLE
    }

    /// Ends with the writing of a response that was made.
    pub(super) fn written(&self) {
        // What is still being made is written later.
        let _ = self
            .0
            .compare_exchange(MADE, IDLE, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// The body of a response. When it is dropped, the response is made.
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
