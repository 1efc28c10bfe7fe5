//! The requests of a connection: how many there may be, which of them a message belongs to, and
//! when the connection ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ElicitRequestParams, ElicitResult, GetExtensions as _,
    GetMeta as _, JsonRpcMessage, JsonRpcRequest, ProgressNotificationParam, ProgressToken, RequestId,
    ServerJsonRpcMessage,
};
use serde::Deserialize as _;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::observer::{Observer, declined};
use values::json::Value;

/// The most requests of a tenant to a server at the same time.
const MAX_REQUESTS: usize = 16;
/// The same for lists of tools, which have a limit of their own. So a run can begin while other
/// runs make long calls.
const MAX_LISTS: usize = 4;

/// The requests of a connection.
#[derive(Debug)]
pub(super) struct Requests {
    sent: Mutex<SentRequests>,
    room: Arc<Semaphore>,
    room_for_lists: Arc<Semaphore>,
    lists_changed: AtomicBool,
    /// Is cancelled once a new connection has to replace this one: a server over HTTP speaks other
    /// revisions, or does not know the session any longer.
    pub(super) outdated: CancellationToken,
    /// Is cancelled once the server can send its own messages over HTTP, or has refused to.
    pub(super) listening: CancellationToken,
    /// Is cancelled at the end of the connection. Ends its HTTP requests, or else its process.
    pub(super) closed: CancellationToken,
}

/// A request that waits for its response.
#[derive(Debug, Clone)]
pub(super) struct Awaited {
    pub(super) id: RequestId,
    /// Decides the parts of the result.
    pub(super) method: String,
}

/// The requests that were sent on a connection.
#[derive(Debug, Default)]
struct SentRequests {
    pending: Vec<Pending>,
    /// The id of the last request. Ids are numbers that grow.
    last_id: u32,
}

/// A request without a response.
#[derive(Debug)]
struct Pending {
    awaited: Awaited,
    token: Option<ProgressToken>,
    /// The caller has it until it no longer waits. `None` during the handshake.
    observer: Option<Weak<Observer>>,
    /// Whether it was sent again in a new session.
    is_repeated: bool,
    /// The response, if the library gets a small one in its place.
    response: Option<Box<ServerJsonRpcMessage>>,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            sent: Mutex::default(),
            room: Arc::new(Semaphore::new(MAX_REQUESTS)),
            room_for_lists: Arc::new(Semaphore::new(MAX_LISTS)),
            lists_changed: AtomicBool::default(),
            outdated: CancellationToken::new(),
            listening: CancellationToken::new(),
            closed: CancellationToken::new(),
        }
    }
}

impl Requests {
    /// Waits for room for a request, which is taken until the permit is dropped.
    pub(super) async fn room_for(&self, request: &ClientRequest) -> Option<OwnedSemaphorePermit> {
        let room = match request {
            ClientRequest::ListToolsRequest(_) => &self.room_for_lists,
            _ => &self.room,
        };
        // Nobody closes it.
        Arc::clone(room).acquire_owned().await.ok()
    }

    /// Returns whether no caller has a request.
    pub(super) fn is_unused(&self) -> bool {
        self.room.available_permits() == MAX_REQUESTS && self.room_for_lists.available_permits() == MAX_LISTS
    }

    /// Notes the request that an outgoing message begins or cancels. A request of a caller has its
    /// observer, an `Arc<Observer>`, among its extensions.
    pub(super) fn note_sent(&self, message: &mut ClientJsonRpcMessage) {
        match message {
            JsonRpcMessage::Request(sent) => {
                let observer = sent.request.extensions_mut().remove::<Arc<Observer>>();
                let request = Pending {
                    awaited: Awaited::of(sent),
                    token: sent.request.get_meta().get_progress_token(),
                    observer: observer.as_ref().map(Arc::downgrade),
                    is_repeated: false,
                    response: None,
                };
                self.sent.lock().add(request);
            }
            JsonRpcMessage::Notification(sent) => {
                if let ClientNotification::CancelledNotification(cancelled) = &sent.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.end(id);
                }
            }
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
    }

    /// Notes that a request has its response. Returns the response that was set aside for it.
    pub(super) fn end(&self, id: &RequestId) -> Option<ServerJsonRpcMessage> {
        let mut sent = self.sent.lock();
        let at = sent.pending.iter().position(|request| request.awaited.id == *id)?;
        sent.pending.remove(at).response.map(|response| *response)
    }

    /// Finds the request of a response, and gives the response the id of the request. Returns the
    /// method of the request, and whether the response had its id.
    ///
    /// The response to a POST belongs to its request, `posted`, also if it has another id. On other
    /// streams, a response with an id that no request has had belongs to the only one.
    pub(super) fn claim(&self, message: &mut Value, posted: Option<&Awaited>) -> Option<(String, bool)> {
        let fields = message.as_object_mut()?;
        let is_response = fields.contains_key("result") || fields.contains_key("error");
        if !is_response || fields.contains_key("method") {
            return None;
        }
        let id = fields.get("id").cloned().unwrap_or_default();
        let (request, had_id) = match posted {
            Some(request) => (request.clone(), request.has_id(&id)),
            None => self.sent.lock().of_response(&id)?,
        };
        fields.insert("id".to_owned(), json!(request.id));
        Some((request.method, had_id))
    }

    /// Returns whether a caller waits for the response to a request.
    pub(super) fn is_observed(&self, id: &RequestId) -> bool {
        self.find(|request| request.awaited.id == *id).is_some()
    }

    /// Sets the response to a request aside. The library passes on another one in its place.
    pub(super) fn set_aside(&self, id: &RequestId, response: ServerJsonRpcMessage) {
        if let Some(request) = self.sent.lock().get_mut(id) {
            request.response = Some(Box::new(response));
        }
    }

    /// Returns whether a request may be sent again in a new session, which it may once.
    pub(super) fn may_repeat(&self, id: &RequestId) -> bool {
        let mut sent = self.sent.lock();
        let request = sent.get_mut(id);
        request.is_some_and(|request| !std::mem::replace(&mut request.is_repeated, true))
    }

    /// Notes that the lists have changed.
    pub(super) fn set_lists_changed(&self) {
        self.lists_changed.store(true, Ordering::Relaxed);
    }

    /// Returns whether the lists have changed since the last time.
    pub(super) fn take_lists_changed(&self) -> bool {
        self.lists_changed.swap(false, Ordering::Relaxed)
    }

    /// Shows the progress of a request.
    pub(super) fn show(&self, progress: &ProgressNotificationParam) {
        let has_token = |request: &Pending| request.token.as_ref() == Some(&progress.progress_token);
        if let Some(observer) = self.find(has_token) {
            observer.show(progress);
        }
    }

    /// Answers a question about a request. Returns `None` if the question was passed on.
    pub(super) fn answer(
        &self,
        request_id: Option<&RequestId>,
        question: &ElicitRequestParams,
    ) -> Option<ElicitResult> {
        let observer = match request_id {
            Some(id) => self.find(|request| request.awaited.id == *id),
            // Not every transport shows which request a question belongs to.
            None => self.only(),
        };
        match (observer, question) {
            (Some(observer), ElicitRequestParams::FormElicitationParams { .. }) => observer.answer(question),
            _ => Some(declined()),
        }
    }

    fn find(&self, is_wanted: impl Fn(&Pending) -> bool) -> Option<Arc<Observer>> {
        let sent = self.sent.lock();
        sent.pending.iter().find(|request| is_wanted(request))?.observer()
    }

    /// Returns the observer of the request that a caller waits for if there is just one.
    fn only(&self) -> Option<Arc<Observer>> {
        let sent = self.sent.lock();
        let mut observers = sent.pending.iter().filter_map(Pending::observer);
        observers.next().filter(|_| observers.next().is_none())
    }
}

impl Awaited {
    pub(super) fn of(request: &JsonRpcRequest<ClientRequest>) -> Self {
        Self {
            id: request.id.clone(),
            method: request.request.method().to_owned(),
        }
    }

    /// Returns whether an id belongs to the request. Some servers make a text of a number.
    fn has_id(&self, id: &Value) -> bool {
        RequestId::deserialize(id).is_ok_and(|id| id.to_string() == self.id.to_string())
    }
}

impl SentRequests {
    /// Adds a request. Removes the ones that could not be sent.
    fn add(&mut self, request: Pending) {
        if let RequestId::Number(id) = request.awaited.id {
            self.last_id = self.last_id.max(u32::try_from(id).unwrap_or_default());
        }
        self.pending.retain(Pending::is_awaited);
        self.pending.push(request);
    }

    fn get_mut(&mut self, id: &RequestId) -> Option<&mut Pending> {
        self.pending.iter_mut().find(|request| request.awaited.id == *id)
    }

    /// Finds the request of a response with an id. Returns also whether the request has that id.
    fn of_response(&self, id: &Value) -> Option<(Awaited, bool)> {
        let (request, has_id) = match self.pending.as_slice() {
            [request] if self.is_unknown(id) => (request, false),
            requests => (requests.iter().find(|request| request.awaited.has_id(id))?, true),
        };
        Some((request.awaited.clone(), has_id))
    }

    /// Returns whether no request has had an id. A request that was cancelled has had one.
    fn is_unknown(&self, id: &Value) -> bool {
        let number = id.as_f64().or_else(|| id.as_str()?.parse().ok());
        number.is_none_or(|number| number < 0.0 || number > f64::from(self.last_id))
    }
}

impl Pending {
    fn observer(&self) -> Option<Arc<Observer>> {
        self.observer.as_ref()?.upgrade()
    }

    fn is_awaited(&self) -> bool {
        self.observer
            .as_ref()
            .is_none_or(|observer| observer.strong_count() > 0)
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::ListToolsRequest;

    use super::*;

    /// Notes that a list of tools with an id is sent.
    fn send(requests: &Requests, id: i64) {
        let list = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        requests.note_sent(&mut ClientJsonRpcMessage::request(list, RequestId::Number(id)));
    }

    #[test]
    fn an_id_that_no_request_has_had_is_that_of_the_only_request() {
        let requests = Requests::default();
        for id in 0..3 {
            send(&requests, id);
        }
        let claimed = |id: &Value| {
            let mut error = json!({"id": id, "error": {}});
            requests.claim(&mut error, None).map(|_| error["id"].clone())
        };
        assert_eq!(claimed(&Value::Null), None);
        for ended in [0, 1] {
            assert!(requests.end(&RequestId::Number(ended)).is_none());
        }
        for id in [
            json!(2),
            json!("2"),
            json!(null),
            json!(""),
            json!(-1),
            json!(3),
            json!("lost"),
        ] {
            assert_eq!(claimed(&id), Some(json!(2)), "{id}");
        }
        // A late response to a cancelled request belongs to no other request.
        for id in [json!(0), json!(1), json!("1"), json!(1.0)] {
            assert_eq!(claimed(&id), None, "{id}");
        }
    }

    #[test]
    fn a_request_whose_caller_does_not_wait_is_removed_with_the_next_one() {
        let requests = Requests::default();
        let observer = Arc::<Observer>::default();
        let mut list = ClientRequest::ListToolsRequest(ListToolsRequest::default());
        list.extensions_mut().insert(Arc::clone(&observer));
        requests.note_sent(&mut ClientJsonRpcMessage::request(list, RequestId::Number(0)));
        assert!(requests.is_observed(&RequestId::Number(0)));
        drop(observer);
        assert!(!requests.is_observed(&RequestId::Number(0)));
        send(&requests, 1);
        let mut error = json!({"error": "lost"});
        assert_eq!(requests.claim(&mut error, None), Some(("tools/list".to_owned(), false)));
        assert_eq!(error["id"], 1);
    }

    #[test]
    fn a_request_is_repeated_once() {
        let requests = Requests::default();
        send(&requests, 0);
        let may = [0, 0, 1].map(|id| requests.may_repeat(&RequestId::Number(id)));
        assert_eq!(may, [true, false, false]);
    }
}
