//! An event sink that keeps everything.

use std::sync::Mutex;

use agent_runtime::agent::{AgentEvent, EventSink};

/// Keeps events in their order.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    events: Mutex<Vec<AgentEvent>>,
}

impl Recorder {
    /// Returns the events so far.
    pub(crate) fn events(&self) -> Vec<AgentEvent> {
        self.events.lock().unwrap().clone()
    }

    /// Returns the names of the events so far, such as `step.started`.
    pub(crate) fn names(&self) -> Vec<String> {
        self.events().iter().map(event_name).collect()
    }
}

impl EventSink for Recorder {
    fn emit(&self, event: AgentEvent) {
        self.events.lock().unwrap().push(event);
    }
}

/// Returns the name that callers see.
pub(crate) fn event_name(event: &AgentEvent) -> String {
    let json = serde_json::to_value(event).unwrap();
    json["type"].as_str().unwrap().to_owned()
}
