//! The states of a thread, each after a session or after the input of its run.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

use serde::Serialize;
use serde_json::json;

use super::fold::Messages;
use super::interrupt::{Interrupt, OpenStep};
use super::message::Message;
use super::request::CheckpointName;
use super::writer::Values;
use crate::http::faces::chat::{ChatEcho, ReadPassage, Said, conversation_of};
use values::clock::Timestamp;
use values::ids::SessionId;
use values::json::{Object, Value};

/// A state.
#[derive(Debug, Clone)]
pub(in crate::http) struct StateNode {
    pub(in crate::http) name: CheckpointName,
    /// The state before it; `None` for the first one.
    pub(in crate::http) parent: Option<CheckpointName>,
    pub(in crate::http) messages: Vec<Message>,
    /// The calls that wait.
    pub(in crate::http) open: Option<OpenStep>,
    /// The error of the run that has begun here.
    pub(in crate::http) error: Option<Value>,
    pub(in crate::http) created_at: Option<Timestamp>,
}

impl StateNode {
    /// Makes a state in which nothing waits.
    pub(in crate::http) fn new(name: CheckpointName, parent: Option<CheckpointName>, messages: Vec<Message>) -> Self {
        Self {
            name,
            parent,
            messages,
            open: None,
            error: None,
            created_at: None,
        }
    }
}

/// Returns all messages of a session.
pub(in crate::http) fn messages_of(passages: &[ReadPassage]) -> Vec<Message> {
    let mut messages = Messages::default();
    for said in conversation_of(passages) {
        add(&mut messages, said);
    }
    messages.list
}

/// Returns the states of the last sessions along the line of a session, oldest first, `most` at the
/// most. `tip` is the session itself.
pub(in crate::http) fn line_of(passages: &[ReadPassage], tip: SessionId, most: usize) -> Vec<StateNode> {
    let repeated = repeated_inputs(passages);
    let all = conversation_of(passages);
    let ended = |said: &Said| match said {
        Said::Agent { run: Some(run), .. } => Some(run.session_id()),
        Said::Agent { .. } | Said::User(_) => None,
    };
    let mut skipped = all.iter().filter_map(ended).count().saturating_sub(most);
    let mut nodes: Vec<StateNode> = Vec::new();
    let mut messages = Messages::default();
    let mut has_input = false;
    let mut parent = CheckpointName::Root;
    for said in all {
        has_input |= matches!(said, Said::User(_));
        let session_id = ended(&said);
        if let Some(session_id) = session_id
            && mem::take(&mut has_input)
        {
            let name = CheckpointName::Input(*repeated.get(&session_id).unwrap_or(&session_id));
            if skipped == 0 {
                nodes.push(StateNode::new(name, Some(parent), messages.list.clone()));
            }
            parent = name;
        }
        add(&mut messages, said);
        if let Some(session_id) = session_id {
            let name = CheckpointName::Session(session_id);
            if skipped == 0 {
                nodes.push(StateNode::new(name, Some(parent), messages.list.clone()));
            }
            skipped = skipped.saturating_sub(1);
            parent = name;
        }
    }
    // The last part may be one that no run has made.
    let name = CheckpointName::Session(tip);
    if parent != name {
        nodes.push(StateNode::new(name, Some(parent), messages.list));
    }
    nodes
}

/// Returns the sessions whose inputs later runs have repeated, by the sessions of those runs.
fn repeated_inputs(passages: &[ReadPassage]) -> BTreeMap<SessionId, SessionId> {
    let runs = passages.iter().filter_map(|(_, runs)| runs.as_ref());
    let repeated = runs.filter_map(|runs| {
        let record = &runs.run.record;
        let again = ChatEcho::of_stored(record.echo.as_deref()).again?;
        Some((record.summary.session_id, again))
    });
    repeated.collect()
}

fn add(messages: &mut Messages, said: Said) {
    match said {
        Said::User(message) => messages.list.push(Message::of_user(message)),
        Said::Agent { id, chunks, .. } => {
            for chunk in &chunks {
                messages.add(&id, chunk);
            }
        }
    }
}

/// Returns states in the order in which clients draw branches: each one after those that continue
/// it, and the line of the head before others. What continues the head is left out: the thread was
/// moved back.
pub(in crate::http) fn in_order(nodes: Vec<StateNode>, head: CheckpointName) -> Vec<StateNode> {
    let key = |name: CheckpointName| name.to_string();
    let mut by_name: BTreeMap<String, StateNode> = nodes.into_iter().map(|node| (key(node.name), node)).collect();
    let mut children: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut roots = Vec::new();
    for (name, node) in &by_name {
        match node.parent.map(key).filter(|parent| by_name.contains_key(parent)) {
            Some(parent) => children.entry(parent).or_default().push(name.clone()),
            None => roots.push(name.clone()),
        }
    }
    let mut line = BTreeSet::new();
    let mut next = Some(key(head));
    while let Some(name) = next {
        next = by_name.get(&name).and_then(|node| node.parent).map(key);
        if !line.insert(name) {
            break;
        }
    }
    children.remove(&key(head));
    // Ids grow with time, so the newest come first.
    let order = |names: &mut Vec<String>| names.sort_by_key(|name| (line.contains(name), name.clone()));
    order(&mut roots);
    let mut ordered = Vec::with_capacity(by_name.len());
    // Each name is met twice: before those that continue it, and after.
    let mut open: Vec<(String, bool)> = roots.into_iter().map(|name| (name, false)).collect();
    while let Some((name, is_done)) = open.pop() {
        if is_done {
            ordered.extend(by_name.remove(&name));
            continue;
        }
        let mut next = children.remove(&name).unwrap_or_default();
        order(&mut next);
        open.push((name, true));
        open.extend(next.into_iter().map(|name| (name, false)));
    }
    ordered
}

/// A state as clients read it.
#[derive(Debug, Clone, Serialize)]
pub(in crate::http) struct ThreadState {
    values: Values,
    /// The nodes that come next: only while something waits.
    next: Vec<&'static str>,
    tasks: Vec<Task>,
    metadata: Object,
    created_at: Option<Timestamp>,
    checkpoint: Option<Checkpoint>,
    parent_checkpoint: Option<Checkpoint>,
    interrupts: Vec<Interrupt>,
}

#[derive(Debug, Clone, Serialize)]
struct Task {
    id: String,
    name: &'static str,
    /// The error, as JSON in a text.
    error: Option<String>,
    interrupts: Vec<Interrupt>,
}

#[derive(Debug, Clone, Serialize)]
#[expect(clippy::struct_field_names, reason = "the names are those of clients")]
struct Checkpoint {
    thread_id: String,
    checkpoint_ns: &'static str,
    checkpoint_id: String,
}

impl Checkpoint {
    fn new(thread: &str, name: CheckpointName) -> Self {
        Self {
            thread_id: thread.to_owned(),
            checkpoint_ns: "",
            checkpoint_id: name.to_string(),
        }
    }
}

impl ThreadState {
    /// Makes the state of a thread without sessions and runs.
    pub(in crate::http) fn of_new_thread() -> Self {
        Self {
            checkpoint: None,
            ..Self::new("", StateNode::new(CheckpointName::Root, None, Vec::new()))
        }
    }

    /// Makes a state of a thread.
    pub(in crate::http) fn new(thread: &str, node: StateNode) -> Self {
        let interrupts = node.open.as_ref().map_or_else(Vec::new, OpenStep::interrupts);
        let task = |name, error, interrupts: &[Interrupt]| Task {
            id: node.name.to_string(),
            name,
            error,
            interrupts: interrupts.to_vec(),
        };
        let (next, tasks) = match &node.error {
            Some(error) => (Vec::new(), vec![task("agent", Some(error.to_string()), &[])]),
            None if interrupts.is_empty() => (Vec::new(), Vec::new()),
            None => (vec!["tools"], vec![task("tools", None, &interrupts)]),
        };
        let source = match node.name {
            CheckpointName::Session(_) => "loop",
            CheckpointName::Root | CheckpointName::Input(_) => "input",
        };
        Self {
            values: Values {
                messages: node.messages,
                interrupts: Vec::new(),
            },
            next,
            tasks,
            metadata: Object::from_iter([("source".to_owned(), json!(source))]),
            created_at: node.created_at,
            checkpoint: Some(Checkpoint::new(thread, node.name)),
            parent_checkpoint: node.parent.map(|parent| Checkpoint::new(thread, parent)),
            interrupts,
        }
    }
}
