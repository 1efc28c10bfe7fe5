//! The bodies of responses.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};

/// The body of a response to a command.
pub(super) type ProxyBody = UnsyncBoxBody<Bytes, hyper::Error>;

/// Makes a body of a text.
pub(super) fn text(text: String) -> ProxyBody {
    let full = Full::new(Bytes::from(text));
    full.map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// A body whose connection moves on as far as the body is read.
pub(super) struct DrivenBody {
    pub(super) body: Incoming,
    /// Ends with the connection.
    pub(super) connection: Option<BoxFuture<'static, hyper::Result<()>>>,
}

impl Body for DrivenBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<hyper::Result<Frame<Bytes>>>> {
        // An error of the connection reaches the body too.
        if let Some(connection) = &mut self.connection
            && connection.as_mut().poll(context).is_ready()
        {
            self.connection = None;
        }
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
