//! A connection to a server, for one tenant.
//!
//! Each request has a limit of time, and is cancelled before it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::{
    ClientRequest, ElicitRequestParams, GetExtensions as _, ListToolsRequest, ProtocolVersion, ServerCapabilities,
    ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RoleClient, RunningService};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tokio_util::task::TaskTracker;

use super::endpoint::Opened;
use super::handler::Handler;
use super::listing::Listing;
use super::observer::Observer;
use super::request_error::RequestError;
use super::requests::Requests;
use super::stdio::ProcessLink;

/// How long a cancellation may take to be sent.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a process that did not respond in time may take to show that it still does.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);

/// An open connection.
#[derive(Debug)]
pub(super) struct Connection {
    service: RunningService<RoleClient, Handler>,
    process: Option<Arc<ProcessLink>>,
    /// Whether the process has not responded to the last request in time.
    is_silent: AtomicBool,
    requests: Arc<Requests>,
    tasks: TaskTracker,
    used_at: Mutex<Instant>,
    /// The tools that were listed last, and until when the list may be used.
    listed: Mutex<Option<(Arc<Listing>, Instant)>>,
}

/// The outcome of a request.
#[derive(Debug)]
pub(super) enum Reply {
    /// The server responded.
    Result(Box<ServerResult>),
    /// The server asks a question, and the request was cancelled.
    Asked(Box<ElicitRequestParams>),
}

impl Connection {
    pub(super) fn new(opened: Opened, requests: Arc<Requests>, tasks: TaskTracker) -> Self {
        Self {
            service: opened.service,
            process: opened.process,
            is_silent: AtomicBool::new(false),
            requests,
            tasks,
            used_at: Mutex::new(Instant::now()),
            listed: Mutex::default(),
        }
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Returns whether the connection can be used. Asks a process that has not responded in time.
    pub(super) async fn responds(&self) -> bool {
        if self.is_closed() || self.is_outdated() {
            return false;
        }
        if !self.is_silent.load(Ordering::Relaxed) {
            return true;
        }
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        // Does not wait for room, since the requests in flight may be the ones without a response.
        let until = Instant::now() + SIGN_OF_LIFE;
        let reply = self
            .exchange(request, (until, SIGN_OF_LIFE), Observer::default(), None)
            .await;
        let responds = matches!(reply, Ok(_) | Err(RequestError::Refused { .. }));
        self.is_silent.store(!responds, Ordering::Relaxed);
        if !responds {
            self.kill();
        }
        responds
    }

    /// Returns whether a new connection has to replace this one, as far as the errors of the server
    /// show.
    pub(super) fn is_outdated(&self) -> bool {
        self.requests.outdated.is_cancelled()
    }

    /// Kills the process of the server, if it is one of the service.
    pub(super) fn kill(&self) {
        if let Some(process) = &self.process {
            process.kill();
        }
    }

    /// Returns when the connection was used last; now if it is in use.
    pub(super) fn used_at(&self) -> Instant {
        if self.requests.is_unused() {
            *self.used_at.lock()
        } else {
            Instant::now()
        }
    }

    /// Returns whether the server speaks a revision since 2026-07-28.
    fn is_modern(&self) -> bool {
        let info = self.service.peer().peer_info();
        let modern = ProtocolVersion::V_2026_07_28;
        info.is_some_and(|info| info.protocol_version.as_str() >= modern.as_str())
    }

    /// Returns the offers of the server.
    pub(super) fn capabilities(&self) -> ServerCapabilities {
        let info = self.service.peer().peer_info();
        info.map(|info| info.capabilities.clone()).unwrap_or_default()
    }

    /// Returns the tools that were listed, if they need not be listed again.
    pub(super) fn listed(&self) -> Option<Arc<Listing>> {
        let mut listed = self.listed.lock();
        let (listing, until) = listed.as_mut()?;
        if self.requests.take_lists_changed() {
            *until = Instant::now();
        }
        (*until > Instant::now()).then(|| Arc::clone(listing))
    }

    /// Returns whether the tools were listed on this connection, also if they changed since.
    pub(super) fn was_listed(&self) -> bool {
        self.listed.lock().is_some()
    }

    /// Retains the tools that were listed.
    pub(super) fn retain(&self, listing: &Arc<Listing>) {
        *self.listed.lock() = Some((Arc::clone(listing), Instant::now() + listing.lifetime));
    }

    /// Sends a request and waits for its response within the limit.
    pub(super) async fn request(
        &self,
        request: ClientRequest,
        limit: Duration,
        observer: Observer,
    ) -> Result<Reply, RequestError> {
        let until = Instant::now() + limit;
        *self.used_at.lock() = Instant::now();
        let Ok(room) = timeout_at(until, self.requests.room_for(&request)).await else {
            let words = "too many requests to it were in progress".to_owned();
            return Err(RequestError::Unreachable(words));
        };
        let reply = self.exchange(request, (until, limit), observer, room).await;
        match (reply, &self.process) {
            (Err(error), Some(process)) => {
                if matches!(error, RequestError::Timeout(_)) {
                    self.is_silent.store(true, Ordering::Relaxed);
                }
                Err(process.explained(error).await)
            }
            (Err(error), None) => {
                if error.may_be_new_revision() {
                    self.requests.outdated.cancel();
                }
                Err(error)
            }
            (Ok(Reply::Result(mut result)), _) => {
                if !self.is_modern() {
                    drop_empty_cursor(&mut result);
                }
                Ok(Reply::Result(result))
            }
            (reply, _) => reply,
        }
    }

    async fn exchange(
        &self,
        mut request: ClientRequest,
        (until, limit): (Instant, Duration),
        observer: Observer,
        room: Option<OwnedSemaphorePermit>,
    ) -> Result<Reply, RequestError> {
        let observer = Arc::new(observer);
        request.extensions_mut().insert(Arc::clone(&observer));
        let peer = self.service.peer();
        let sending = peer.send_request_with_option(request, PeerRequestOptions::no_options());
        let handle = timeout_at(until, sending)
            .await
            .map_err(|_| RequestError::Timeout(limit))?;
        let handle = handle.map_err(|error| RequestError::of_service(&error))?;
        let mut request = OpenRequest {
            handle: Some(handle),
            room,
            tasks: &self.tasks,
        };
        let reply = tokio::select! {
            biased;
            response = request.response() => {
                request.handle = None;
                response.map(|result| Reply::Result(Box::new(result)))
            }
            question = observer.asked() => Ok(Reply::Asked(question)),
            () = sleep_until(until) => Err(RequestError::Timeout(limit)),
        };
        *self.used_at.lock() = Instant::now();
        reply
    }

    /// Waits until the connection has been unused for a while, or a new one has to replace it.
    pub(super) async fn idle(&self, limit: Duration) {
        loop {
            let left = limit.saturating_sub(self.used_at().elapsed());
            if left.is_zero() || self.is_closed() {
                return;
            }
            tokio::select! {
                () = self.requests.outdated.cancelled() => return,
                () = sleep(left) => (),
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // The library may wait for a process that reads nothing.
        self.requests.closed.cancel();
    }
}

/// Ends a list at an empty cursor, as some servers of older revisions do.
fn drop_empty_cursor(result: &mut ServerResult) {
    let cursor = match result {
        ServerResult::ListToolsResult(list) => &mut list.next_cursor,
        ServerResult::ListResourcesResult(list) => &mut list.next_cursor,
        ServerResult::ListResourceTemplatesResult(list) => &mut list.next_cursor,
        ServerResult::ListPromptsResult(list) => &mut list.next_cursor,
        _ => return,
    };
    *cursor = cursor.take().filter(|cursor| !cursor.is_empty());
}

/// A request that is cancelled when it is dropped before its response.
struct OpenRequest<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    /// Returned when the request has ended or was cancelled.
    room: Option<OwnedSemaphorePermit>,
    tasks: &'a TaskTracker,
}

impl OpenRequest<'_> {
    async fn response(&mut self) -> Result<ServerResult, RequestError> {
        let handle = self.handle.as_mut().ok_or(RequestError::Broken)?;
        match (&mut handle.rx).await {
            Ok(response) => response.map_err(|error| RequestError::of_service(&error)),
            Err(_) => Err(RequestError::Broken),
        }
    }
}

impl Drop for OpenRequest<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        // Without a runtime, the process ends and the connection with it.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let room = self.room.take();
        self.tasks.spawn(async move {
            let _room = room;
            let reason = "the caller does not wait any longer".to_owned();
            let _ = timeout(CANCEL_TIMEOUT, handle.cancel(Some(reason))).await;
        });
    }
}
