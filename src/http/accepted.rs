//! What a connection needs to serve requests, whichever protocol they come in.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::routing::future::RouteFuture;
use hyper::body::Incoming;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tower::Service as _;

use super::guards::Reserved;
use super::pace::Patience;
use super::peer::Peer;
use super::state::Api;
use super::tls_settings::CertifiedCaller;

/// A connection that was accepted.
pub(super) struct Accepted {
    pub(super) router: Router,
    pub(super) api: Arc<Api>,
    /// Whether the connection is one of the reserve.
    pub(super) is_reserved: bool,
    /// The address of the peer, if the system knows it.
    pub(super) peer: Option<Peer>,
    /// The caller that the client certificate identifies.
    pub(super) caller: Option<CertifiedCaller>,
    /// The requests that all connections of HTTP/2 may have open.
    pub(super) requests: Arc<Semaphore>,
    pub(super) shutdown: CancellationToken,
}

impl Accepted {
    /// Returns the limits on a peer that reads slowly.
    pub(super) fn patience(&self) -> Patience {
        Patience {
            window: self.api.limits.request_timeout,
            least_rate: self.api.limits.min_transfer_rate,
        }
    }

    /// Takes the permit of a request over HTTP/2. Without one, the request may only be a probe.
    pub(super) fn permit(&self) -> Option<OwnedSemaphorePermit> {
        let requests = (!self.is_reserved).then(|| Arc::clone(&self.requests))?;
        requests.try_acquire_owned().ok()
    }

    /// Responds to a request, which must be a probe if it is `reserved`.
    pub(super) fn respond(&self, mut request: hyper::Request<Incoming>, reserved: bool) -> RouteFuture<Infallible> {
        if reserved {
            request.extensions_mut().insert(Reserved);
        }
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        if let Some(caller) = &self.caller {
            request.extensions_mut().insert(caller.clone());
        }
        self.router.clone().call(request)
    }
}
