//! The messages that compilers choose from: the history from its newest summary on, without
//! messages that no request may contain.

use std::ops::Range;
use std::sync::Arc;

use super::traces::{Traces, VisibleTraces};
use crate::state::{AgentState, Messages};
use values::ids::ExecutionId;
use values::message::{Message, Role, Section};
use values::session::History;

/// The part of a history that may go to the model, in its order.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The newest summary; it comes before the messages.
    pub summary: Option<IndexedMessage>,
    /// The index of the first message that the summary does not cover.
    pub start: usize,
    /// The messages from `start` on. The current execution's input from before `start` precedes
    /// them.
    pub messages: Vec<IndexedMessage>,
    /// The traces among the messages.
    pub(crate) traces: VisibleTraces,
}

/// A message and its index in the whole history.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexedMessage {
    pub index: usize,
    pub message: Arc<Message>,
}

impl IndexedMessage {
    /// Returns whether the message contains tool results, which belong to the message before it.
    pub fn is_result(&self) -> bool {
        is_result(&self.message)
    }
}

impl Reading {
    /// Reads the wanted sections and traces from the newest summary on.
    ///
    /// Leaves out failed completions except the last one, older summaries, and unpaired calls and
    /// results.
    pub fn of(state: &AgentState, traces: Traces, wants: impl Fn(&Section) -> bool) -> Self {
        let newest = newest_summary(state.store().history(), 0);
        let selection = Selection::of(state, traces, newest, wants);
        let mut chosen = selection.input_before_start();
        chosen.extend(selection.from(selection.start));
        Self {
            summary: selection.summary.map(indexed),
            start: selection.start,
            messages: paired(&chosen),
            traces: selection.traces,
        }
    }

    /// Returns the traces that were in the request of an earlier completion.
    pub(crate) fn traces_of(&self, answer: &IndexedMessage, history: &History) -> VisibleTraces {
        self.traces
            .of_execution(answer.message.tags.execution_id, history, self.start..answer.index)
    }

    /// Returns whether a message is a trace of an earlier execution that has no final response yet.
    pub(super) fn is_unfinished(&self, indexed: &IndexedMessage) -> bool {
        self.traces.is_unfinished(indexed.index, &indexed.message)
    }

    /// Returns the messages in the order of a request: the summary first.
    pub fn into_messages(self) -> Messages {
        let indexed = self.summary.into_iter().chain(self.messages);
        indexed.map(|indexed| indexed.message).collect()
    }
}

/// The rules by which messages are chosen for the next request of a state.
pub(super) struct Selection<'a, W> {
    history: &'a History,
    current: Option<ExecutionId>,
    wants: W,
    /// The newest summary.
    pub(super) summary: Option<(usize, &'a Arc<Message>)>,
    /// The index of the first message that the summary does not cover.
    pub(super) start: usize,
    /// The traces that are chosen.
    pub(super) traces: VisibleTraces,
}

impl<'a, W: Fn(&Section) -> bool> Selection<'a, W> {
    /// Makes the rules for the state, whose newest summary is at the index.
    pub(super) fn of(state: &'a AgentState, traces: Traces, summary: Option<usize>, wants: W) -> Self {
        let history = state.store().history();
        let current = state.execution().map(|execution| execution.execution_id);
        let (first, end) = (history.first_index(), history.len());
        let summary = summary.and_then(|index| Some((index, history.get(index)?)));
        let covered = summary.and_then(|(_, message)| message.tags.covers);
        // An index too large for memory covers all messages in memory.
        let start = covered.map_or(first, |covers| usize::try_from(covers.to).unwrap_or(end));
        let start = start.clamp(first, end);
        Self {
            history,
            current,
            wants,
            summary,
            start,
            traces: VisibleTraces::of(traces, current, history, start..end),
        }
    }

    /// Returns the chosen messages from the index on, which the summary does not cover.
    pub(super) fn from(&self, index: usize) -> impl Iterator<Item = (usize, &'a Arc<Message>)> {
        messages(self.history, index..self.history.len()).filter(|(index, message)| self.is_chosen(*index, message))
    }

    /// Returns the input of the current execution that the summary covers. An execution's messages
    /// are adjacent, so the search back ends at the first message of another execution.
    pub(super) fn input_before_start(&self) -> Vec<(usize, &'a Arc<Message>)> {
        let mut input: Vec<_> = messages(self.history, self.history.first_index()..self.start)
            .rev()
            .take_while(|(_, message)| self.is_current(message))
            .filter(|(_, message)| message.tags.step_id.is_none() && !message.tags.is_trace)
            .filter(|(index, message)| self.is_chosen(*index, message))
            .collect();
        input.reverse();
        input
    }

    /// Returns whether a message belongs to the current execution.
    pub(super) fn is_current(&self, message: &Message) -> bool {
        self.current.is_some() && message.tags.execution_id == self.current
    }

    fn is_chosen(&self, index: usize, message: &Message) -> bool {
        let tags = &message.tags;
        let is_hidden = tags.is_trace && !self.traces.have(index, message);
        let is_failed = tags.is_trace && tags.is_partial;
        !is_hidden && !is_failed && tags.covers.is_none() && (self.wants)(&tags.section)
    }
}

/// Returns the index of the newest summary at the index `first` or later.
pub(super) fn newest_summary(history: &History, first: usize) -> Option<usize> {
    let mut newest = messages(history, first.max(history.first_index())..history.len()).rev();
    newest.find(|(_, message)| is_summary(message)).map(|(index, _)| index)
}

fn messages(history: &History, indexes: Range<usize>) -> impl DoubleEndedIterator<Item = (usize, &Arc<Message>)> {
    indexes.filter_map(|index| Some((index, history.get(index)?)))
}

fn indexed((index, message): (usize, &Arc<Message>)) -> IndexedMessage {
    let message = Arc::clone(message);
    IndexedMessage { index, message }
}

pub(super) fn is_result(message: &Message) -> bool {
    message.role == Role::Tool
}

/// Returns whether a message is a summary. A summary has text only, since a call would need its
/// result.
fn is_summary(message: &Message) -> bool {
    let is_words = !is_result(message) && message.tool_calls().next().is_none();
    message.tags.covers.is_some() && is_words
}

/// Drops messages with calls that lack a result, and results that lack their call. No provider
/// accepts one without the other. The service stores calls and results in pairs, but some sessions
/// may have an unpaired one. Dropping it makes them usable.
pub(super) fn paired(chosen: &[(usize, &Arc<Message>)]) -> Vec<IndexedMessage> {
    let mut retained = Vec::with_capacity(chosen.len());
    for block in chosen.chunk_by(|_, (_, next)| is_result(next)) {
        let Some((&(index, first), answers)) = block.split_first() else {
            continue;
        };
        let mut asked: Vec<&str> = first.tool_calls().map(|call| call.id.as_str()).collect();
        let results = answers.iter().flat_map(|(_, answer)| answer.tool_results());
        let mut answered: Vec<&str> = results.map(|result| result.call_id.as_str()).collect();
        asked.sort_unstable();
        answered.sort_unstable();
        let is_unique = asked
            .windows(2)
            .all(|pair| matches!(pair, [left, right] if left != right));
        let is_whole = is_unique && asked == answered;
        // The first message of a block is a result only at the beginning of the list.
        if !is_result(first) && (asked.is_empty() || is_whole) {
            retained.push(indexed((index, first)));
        }
        if !asked.is_empty() && is_whole {
            retained.extend(answers.iter().copied().map(indexed));
        }
    }
    retained
}
