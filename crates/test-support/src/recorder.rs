//! An event sink that retains everything.

use std::fmt;
use std::sync::Mutex;

use agent::{AgentEvent, EventSink};

/// Retains events in their order, and does something at one of them.
#[derive(Debug, Default)]
pub struct Recorder {
    events: Mutex<Vec<AgentEvent>>,
    trap: Mutex<Option<Trap>>,
}

/// An action at the event with a number, from 1.
struct Trap {
    at: usize,
    action: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Trap({})", self.at)
    }
}

impl Recorder {
    /// Does something at the event of the number, from 1.
    pub fn at(&self, number: usize, action: impl FnOnce() + Send + 'static) {
        *self.trap.lock().unwrap() = Some(Trap {
            at: number,
            action: Box::new(action),
        });
    }

    /// Waits for an event of this name, also on a clock that stands still; fails after twenty
    /// seconds.
    pub async fn until_emitted(&self, name: &str) {
        let begun = std::time::Instant::now();
        while !self.names().iter().any(|emitted| emitted == name) {
            assert!(begun.elapsed().as_secs() < 20, "{name} is not emitted");
            tokio::task::yield_now().await;
        }
    }

    /// Returns the events so far.
    pub fn events(&self) -> Vec<AgentEvent> {
        self.events.lock().unwrap().clone()
    }

    /// Returns the names of the events so far, such as `step.started`.
    pub fn names(&self) -> Vec<String> {
        self.events().iter().map(event_name).collect()
    }
}

impl EventSink for Recorder {
    fn emit(&self, event: AgentEvent) {
        let count = {
            let mut events = self.events.lock().unwrap();
            events.push(event);
            events.len()
        };
        let due = self.trap.lock().unwrap().take_if(|trap| trap.at == count);
        if let Some(trap) = due {
            (trap.action)();
        }
    }
}

/// Returns the name that callers see.
pub fn event_name(event: &AgentEvent) -> String {
    let json = serde_json::to_value(event).unwrap();
    json["type"].as_str().unwrap().to_owned()
}
