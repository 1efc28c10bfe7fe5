//! Writes and reads the state as JSON without loss: unknown fields of a later version are retained
//! and written back.
//!
//! The store owns versions, compression and bytes.

use std::sync::Arc;

use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::addition::StateAddition;
use super::agent_state::AgentState;
use super::context::MessageStore;
use super::execution::ExecutionState;
use super::step::StepExecution;
use values::json::{Unread, Value};
use values::message::Message;
use values::session::History;

impl AgentState {
    /// Writes the state without its transient parts: the step in progress, its start, and the
    /// messages sent to models.
    pub fn to_json(&self) -> Result<Value, serde_json::Error> {
        let mut written = serde_json::to_value(self)?;
        self.unread.restore(&mut written);
        if let Some(execution) = &self.execution {
            if let Some(written) = written.get_mut("execution") {
                execution.unread.restore(written);
            }
            let steps = execution.step_executions.iter().map(|step| &step.unread);
            restore_items(list(&mut written, STEPS), steps);
        }
        let messages = self.context.store.history().iter();
        restore_items(list(&mut written, MESSAGES), messages.map(|message| &message.unread));
        Ok(written)
    }

    /// Returns whether no part retains unknown fields.
    fn is_whole(&self) -> bool {
        let mut messages = self.context.store.history().iter();
        let is_whole = |execution: &ExecutionState| {
            let mut steps = execution.step_executions.iter();
            execution.unread.is_empty() && steps.all(|step| step.unread.is_empty())
        };
        self.unread.is_empty()
            && self.execution().is_none_or(is_whole)
            && messages.all(|message| message.unread.is_empty())
    }

    /// Reads a state that this version or another one wrote.
    pub fn from_json(stored: Value) -> Result<Self, serde_json::Error> {
        let state = Self::deserialize(&stored)?;
        let read = serde_json::to_value(&state)?;
        Ok(if read == stored {
            state
        } else {
            state.with_unread(read, stored)
        })
    }

    /// Retains the unknown parts of the stored JSON, each with its owner.
    fn with_unread(mut self, mut read: Value, mut stored: Value) -> Self {
        let messages = unread_items(&mut read, &mut stored, MESSAGES);
        let steps = unread_items(&mut read, &mut stored, STEPS);
        let execution = (take(&mut read, "execution"), take(&mut stored, "execution"));
        self.context.store = with_unread_messages(&self.context.store, messages);
        self.execution = self.execution.map(|read| {
            Box::new(ExecutionState {
                unread: Unread::between(&execution.0, &execution.1),
                ..with_unread_steps(*read, steps)
            })
        });
        self.unread = Unread::between(&read, &stored);
        self
    }
}

/// The stored form of an addition.
#[derive(Serialize, Deserialize)]
struct StoredAddition<T> {
    first_step: usize,
    has_context: bool,
    state: T,
}

impl StateAddition {
    fn stored<T>(&self, state: T) -> StoredAddition<T> {
        StoredAddition {
            first_step: self.first_step,
            has_context: self.has_context,
            state,
        }
    }
}

impl Serialize for StateAddition {
    /// Makes a [`Value`] only if unknown fields are written back: each step of a run is written.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.state.is_whole() {
            return self.stored(&self.state).serialize(serializer);
        }
        let state = self.state.to_json().map_err(S::Error::custom)?;
        self.stored(state).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for StateAddition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = StoredAddition::<Value>::deserialize(deserializer)?;
        Ok(Self {
            first_step: stored.first_step,
            has_context: stored.has_context,
            state: AgentState::from_json(stored.state).map_err(de::Error::custom)?,
        })
    }
}

/// The lists whose items retain their own unknown parts.
const MESSAGES: &[&str] = &["context", "store"];
const STEPS: &[&str] = &["execution", "step_executions"];

fn with_unread_messages(store: &MessageStore, unread: Vec<Unread>) -> MessageStore {
    let history = store.history();
    let messages = history.iter().zip(unread).map(|(message, unread)| {
        if unread.is_empty() {
            return Arc::clone(message);
        }
        let message = Message::clone(message);
        Arc::new(Message { unread, ..message })
    });
    MessageStore::new(History::starting_at(history.first_index(), messages))
}

fn with_unread_steps(execution: ExecutionState, unread: Vec<Unread>) -> ExecutionState {
    let steps = execution.step_executions.iter().zip(unread).map(|(step, unread)| {
        if unread.is_empty() {
            return Arc::clone(step);
        }
        let step = StepExecution::clone(step);
        Arc::new(StepExecution { unread, ..step })
    });
    ExecutionState {
        step_executions: steps.collect(),
        ..execution
    }
}

/// Removes the lists at the path from both values. Returns the unread fields of each item.
fn unread_items(read: &mut Value, stored: &mut Value, path: &[&str]) -> Vec<Unread> {
    let take = |value: &mut Value| list(value, path).map(std::mem::take).unwrap_or_default();
    let (read, stored) = (take(read), take(stored));
    let pairs = read.iter().zip(&stored);
    pairs.map(|(read, stored)| Unread::between(read, stored)).collect()
}

fn restore_items<'a>(written: Option<&mut Vec<Value>>, unread: impl Iterator<Item = &'a Unread>) {
    for (written, unread) in written.into_iter().flatten().zip(unread) {
        unread.restore(written);
    }
}

/// Returns the list at the path. A partial history has its messages one level deeper.
fn list<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Vec<Value>> {
    let at = path.iter().try_fold(value, |value, name| value.get_mut(name))?;
    let at = if at.is_object() { at.get_mut("messages")? } else { at };
    at.as_array_mut()
}

fn take(value: &mut Value, name: &str) -> Value {
    value.get_mut(name).map(Value::take).unwrap_or_default()
}
