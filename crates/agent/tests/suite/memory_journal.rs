//! A journal in memory that breaks off where a test wants: its process dies there, or its store
//! fails.

use std::sync::{Arc, Mutex};

use agent::journal::{Journal, JournalEntry, JournalError};
use agent::ports::ToolUse;
use agent::state::{AgentStep, ToolExecution};
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use values::session::EnvironmentState;

/// How it breaks off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Break {
    /// The process dies before the entries are persisted.
    DiesBefore,
    /// The process dies once the entries are persisted.
    DiesAfter,
    /// The store fails.
    Fails,
}

/// Retains entries as they would be stored.
#[derive(Debug, Default)]
pub(crate) struct MemoryJournal {
    appends: Mutex<Vec<Vec<JournalEntry>>>,
    attempts: Mutex<usize>,
    broken: Option<(usize, Break)>,
    died: Notify,
}

impl MemoryJournal {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Breaks off at the append of the number, from 1.
    pub(crate) fn broken(at: usize, by: Break) -> Arc<Self> {
        Arc::new(Self {
            broken: Some((at, by)),
            ..Self::default()
        })
    }

    /// Returns the entries of each append.
    pub(crate) fn appends(&self) -> Vec<Vec<JournalEntry>> {
        self.appends.lock().unwrap().clone()
    }

    /// Returns all entries.
    pub(crate) fn entries(&self) -> Vec<JournalEntry> {
        self.appends().concat()
    }

    /// Returns how often entries were to be persisted.
    pub(crate) fn attempts(&self) -> usize {
        *self.attempts.lock().unwrap()
    }

    /// Waits until the process is to die.
    pub(crate) async fn died(&self) {
        self.died.notified().await;
    }
}

impl Journal for MemoryJournal {
    fn append(&self, entries: Vec<JournalEntry>) -> BoxFuture<'_, Result<(), JournalError>> {
        Box::pin(async move {
            assert!(!entries.is_empty(), "there is nothing to persist");
            tokio::task::yield_now().await;
            let attempt = {
                let mut attempts = self.attempts.lock().unwrap();
                *attempts += 1;
                *attempts
            };
            let broken = self.broken.filter(|(at, _)| *at == attempt).map(|(_, by)| by);
            if broken == Some(Break::Fails) {
                return Err(JournalError::Failed("the disk is full".into()));
            }
            if broken != Some(Break::DiesBefore) {
                let stored = entries.into_iter().map(|entry| written(&entry).1).collect();
                self.appends.lock().unwrap().push(stored);
            }
            if broken.is_some() {
                self.died.notify_one();
                std::future::pending::<()>().await;
            }
            Ok(())
        })
    }
}

/// Returns the size of an entry as JSON, and the entry as it is read again.
pub(crate) fn written(entry: &JournalEntry) -> (usize, JournalEntry) {
    let mut size = 0;
    let mut add = |json: &serde_json::Value| size += json.to_string().len();
    let entry = match entry.clone() {
        begun @ (JournalEntry::SubagentBegun { .. } | JournalEntry::CallBegun { .. }) => begun,
        JournalEntry::EnvironmentChanged { revision, state } => JournalEntry::EnvironmentChanged {
            revision,
            state: again::<Box<EnvironmentState>>(&state, &mut add),
        },
        JournalEntry::Reached(addition) => JournalEntry::Reached(again(&addition, &mut add)),
        JournalEntry::CallsRequested {
            step,
            started_at,
            addition,
        } => JournalEntry::CallsRequested {
            step: again::<Box<AgentStep>>(&step, &mut add),
            started_at,
            addition: again(&addition, &mut add),
        },
        JournalEntry::CallDecided {
            index,
            tool_use,
            addition,
        } => JournalEntry::CallDecided {
            index,
            tool_use: again::<ToolUse>(&tool_use, &mut add),
            addition: again(&addition, &mut add),
        },
        JournalEntry::CallEnded {
            index,
            execution,
            addition,
        } => JournalEntry::CallEnded {
            index,
            execution: again::<Box<ToolExecution>>(&execution, &mut add),
            addition: again(&addition, &mut add),
        },
    };
    (size, entry)
}

fn again<T: serde::Serialize + serde::de::DeserializeOwned>(value: &T, add: &mut impl FnMut(&serde_json::Value)) -> T {
    let json = serde_json::to_value(value).unwrap();
    add(&json);
    serde_json::from_value(json).unwrap()
}
