//! The facts that a caller has seen of its run. Checks compare them with the stored ones.

use std::time::Duration;

use uuid::Uuid;

use crate::request::Request;

/// The facts that a caller has seen.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The request.
    pub(crate) request: Request,
    /// The run, once it was accepted.
    pub(crate) run: Option<RunIds>,
    /// How long it took from the acceptance to the terminal event.
    pub(crate) took: Duration,
    /// The events as they were read while the run lived.
    pub(crate) events: Vec<ReadEvent>,
    /// The results of calls that were emitted, also those that another worker has replaced since.
    pub(crate) emitted: Vec<String>,
    /// How often the reader came back.
    pub(crate) reconnects: u64,
    /// How often the reader was sent back.
    pub(crate) sent_back: u64,
    /// The response to a stop, a cancellation or a message.
    pub(crate) control: Option<String>,
    /// The faults that the caller saw.
    pub(crate) faults: Vec<String>,
}

/// The ids of an accepted run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
pub(crate) struct RunIds {
    /// The run.
    pub(crate) run_id: Uuid,
    /// The session that it publishes, if it does.
    pub(crate) session_id: Uuid,
}

/// An event as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReadEvent {
    /// Its number.
    pub(crate) sequence: u64,
    /// Its name.
    pub(crate) name: String,
    /// The hash of its content.
    pub(crate) digest: blake3::Hash,
    /// The content of a terminal event.
    pub(crate) text: Option<String>,
}

impl Facts {
    /// Begins the story of a request.
    pub(crate) fn new(request: Request) -> Self {
        Self {
            request,
            run: None,
            took: Duration::ZERO,
            events: Vec::new(),
            emitted: Vec::new(),
            reconnects: 0,
            sent_back: 0,
            control: None,
            faults: Vec::new(),
        }
    }

    /// Returns the status of the terminal event, once it was read.
    pub(crate) fn end(&self) -> Option<&'static str> {
        self.events.last().and_then(|event| terminal_status(&event.name))
    }

    /// Describes the run in one line.
    pub(crate) fn describe(&self) -> String {
        let run_id = self
            .run
            .map_or_else(|| "no run".to_owned(), |run| run.run_id.to_string());
        let last = self.events.last().map_or("no event", |event| event.name.as_str());
        format!(
            "request {} ({:?}{}), run {run_id}, {} events up to {last}, {} reconnects, control {:?}",
            self.request.number,
            self.request.kind,
            self.request
                .thread
                .as_ref()
                .map(|name| format!(" on {name}"))
                .unwrap_or_default(),
            self.events.len(),
            self.reconnects,
            self.control,
        )
    }
}

/// Returns the status of a run whose last event has this name.
pub(crate) fn terminal_status(event: &str) -> Option<&'static str> {
    match event {
        "run.completed" => Some("completed"),
        "run.stopped" => Some("stopped"),
        "run.waiting" => Some("waiting"),
        "run.failed" => Some("failed"),
        "run.cancelled" => Some("cancelled"),
        _ => None,
    }
}
