//! The requests in flight on a connection: how many there may be, and what is observed of them,
//! which is their progress, the questions of the server, and large results.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use rmcp::model::{
    ClientRequest, ElicitRequestParams, ElicitResult, ElicitationAction, JsonRpcMessage, ProgressNotificationParam,
    ProgressToken, RequestId, ServerJsonRpcMessage,
};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use super::incoming::OpenRequests;
use super::input::{accepted, question_hash};
use agent::ports::OutputSink;
use values::json::Value;

/// The most requests of a tenant to a server at the same time.
pub(super) const MAX_REQUESTS: usize = 16;
/// The same for lists of tools, which have a limit of their own. So a run can begin while other
/// runs make long calls.
pub(super) const MAX_LISTS: usize = 4;
/// The most bytes of progress that a call shows.
const MAX_SHOWN: usize = 64 << 10;
/// The most bytes of one message of progress.
const MAX_MESSAGE: usize = 1_000;

/// The requests in flight on a connection.
#[derive(Debug)]
pub(super) struct Requests {
    in_flight: Mutex<Vec<InFlight>>,
    room: Arc<Semaphore>,
    room_for_lists: Arc<Semaphore>,
    lists_changed: AtomicBool,
    /// Those without a response, also those of the handshake.
    pub(super) open: OpenRequests,
    /// Is cancelled once a new connection has to replace this one: a server over HTTP speaks other
    /// revisions, or does not know the session any longer.
    pub(super) outdated: CancellationToken,
}

/// A request that was sent. It is in flight while somebody holds its observer.
#[derive(Debug)]
struct InFlight {
    id: RequestId,
    token: Option<ProgressToken>,
    observer: Weak<Observer>,
}

/// Observes a request until it is dropped.
#[derive(Debug)]
pub(super) struct Observer {
    interest: Interest,
    /// Receives the questions that have no answer yet.
    questions: mpsc::Sender<ElicitRequestParams>,
    /// The bytes of progress that were shown.
    shown: AtomicUsize,
    /// The large response, until its request takes it. The library gets a small one meanwhile.
    set_aside: Mutex<Option<Box<ServerJsonRpcMessage>>>,
}

/// What the maker of a request wants to know of it, and can answer.
#[derive(Debug, Default)]
pub(super) struct Interest {
    /// Receives the progress, with the id of the tool call.
    pub(super) progress: Option<(Arc<dyn OutputSink>, String)>,
    /// The answers to questions that the server asks during the request, by the hash of the
    /// question.
    pub(super) answers: BTreeMap<String, Value>,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            in_flight: Mutex::default(),
            room: Arc::new(Semaphore::new(MAX_REQUESTS)),
            room_for_lists: Arc::new(Semaphore::new(MAX_LISTS)),
            lists_changed: AtomicBool::default(),
            open: OpenRequests::default(),
            outdated: CancellationToken::new(),
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

    /// Adds a request that is about to be sent.
    pub(super) fn add(&self, id: RequestId, token: Option<ProgressToken>, observer: &Arc<Observer>) {
        let mut in_flight = self.in_flight.lock();
        in_flight.retain(InFlight::is_observed);
        in_flight.push(InFlight {
            id,
            token,
            observer: Arc::downgrade(observer),
        });
    }

    /// Returns whether no request is in flight.
    pub(super) fn is_empty(&self) -> bool {
        !self.in_flight.lock().iter().any(InFlight::is_observed)
    }

    /// Returns whether somebody waits for the response to a request.
    pub(super) fn is_in_flight(&self, id: &RequestId) -> bool {
        self.find(|request| request.id == *id).is_some()
    }

    /// Sets the response to a request aside. The library passes on another one in its place.
    pub(super) fn set_aside(&self, id: &RequestId, response: ServerJsonRpcMessage) {
        if let Some(observer) = self.find(|request| request.id == *id) {
            *observer.set_aside.lock() = Some(Box::new(response));
        }
    }

    /// Returns the response that was set aside if this one stands for it.
    pub(super) fn whole(&self, message: ServerJsonRpcMessage) -> ServerJsonRpcMessage {
        let JsonRpcMessage::Response(response) = &message else {
            return message;
        };
        let observer = self.find(|request| request.id == response.id);
        let set_aside = observer.and_then(|observer| observer.set_aside.lock().take());
        set_aside.map_or(message, |response| *response)
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
        let of_token = |request: &InFlight| request.token.as_ref() == Some(&progress.progress_token);
        if let Some(observer) = self.find(of_token) {
            observer.show(progress);
        }
    }

    /// Answers a question about a request. Returns `None` if the question was passed on.
    pub(super) fn answer(&self, of: Option<&RequestId>, question: &ElicitRequestParams) -> Option<ElicitResult> {
        let observer = match of {
            Some(id) => self.find(|request| request.id == *id),
            // Not every transport shows which request a question belongs to.
            None => self.only(),
        };
        match (observer, question) {
            (Some(observer), ElicitRequestParams::FormElicitationParams { .. }) => observer.answer(question),
            _ => Some(declined()),
        }
    }

    fn find(&self, is_wanted: impl Fn(&InFlight) -> bool) -> Option<Arc<Observer>> {
        let in_flight = self.in_flight.lock();
        in_flight.iter().find(|request| is_wanted(request))?.observer.upgrade()
    }

    /// Returns the observer of the request in flight if there is just one.
    fn only(&self) -> Option<Arc<Observer>> {
        let in_flight = self.in_flight.lock();
        let mut observers = in_flight.iter().filter_map(|request| request.observer.upgrade());
        observers.next().filter(|_| observers.next().is_none())
    }
}

impl InFlight {
    fn is_observed(&self) -> bool {
        self.observer.strong_count() > 0
    }
}

impl Observer {
    pub(super) fn new(interest: Interest, questions: mpsc::Sender<ElicitRequestParams>) -> Self {
        Self {
            interest,
            questions,
            shown: AtomicUsize::new(0),
            set_aside: Mutex::default(),
        }
    }

    fn show(&self, progress: &ProgressNotificationParam) {
        let Some((sink, call_id)) = &self.interest.progress else {
            return;
        };
        let text = words(progress);
        let before = self.shown.fetch_add(text.len(), Ordering::Relaxed);
        if before + text.len() <= MAX_SHOWN {
            sink.show(call_id, text);
        }
    }

    fn answer(&self, question: &ElicitRequestParams) -> Option<ElicitResult> {
        if let Some(answer) = self.interest.answers.get(&question_hash(question)) {
            return Some(accepted(question, answer));
        }
        match self.questions.try_send(question.clone()) {
            Ok(()) => None,
            Err(_) => Some(declined()),
        }
    }
}

fn declined() -> ElicitResult {
    ElicitResult::new(ElicitationAction::Decline)
}

/// Returns a line about the progress.
fn words(progress: &ProgressNotificationParam) -> String {
    let share = match progress.total {
        Some(total) => format!("{}/{total}", progress.progress),
        None => progress.progress.to_string(),
    };
    match progress.message.as_deref() {
        Some(message) => format!("[{share}] {}\n", &message[..message.floor_char_boundary(MAX_MESSAGE)]),
        None => format!("[{share}]\n"),
    }
}
