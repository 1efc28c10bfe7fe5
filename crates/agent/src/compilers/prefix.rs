//! Compiles a request from the prefix of the request before it and the messages that were added
//! since. Chooses the same messages as a [`Reading`] of the whole history.
//!
//! A message joins the prefix when no later message can change whether it is chosen. That is the
//! case up to the newest final response of an earlier execution, if another message of the request
//! follows: then all results of its calls are known.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::reading::{Reading, Selection, is_result, newest_summary, paired};
use super::traces::Traces;
use crate::state::{AgentState, Messages};
use values::message::{Message, Section};
use values::session::{PrefixChoice, RequestPrefix};

/// Returns the messages of the sections, or of all sections, and the wanted traces.
pub(super) fn compile(state: &AgentState, traces: Traces, sections: Option<&BTreeSet<Section>>) -> Messages {
    let history = state.store().history();
    let known = history.request_prefix();
    let newest = newest_summary(history, known.map_or(0, |known| known.end()));
    let choice = PrefixChoice {
        sections: sections.cloned(),
        has_traces: traces == Traces::All,
        summary: newest.or_else(|| known?.choice().summary),
    };
    let known = known.filter(|known| *known.choice() == choice);
    let is_wanted = |section: &Section| sections.is_none_or(|sections| sections.contains(section));
    let selection = Selection::of(state, traces, choice.summary, is_wanted);
    if !selection.input_before_start().is_empty() {
        // The input stands between the summary and the other messages, in this execution only.
        return Reading::of(state, traces, is_wanted).into_messages();
    }
    let first = known.map_or(selection.start, |known| known.end());
    let chosen: Vec<_> = selection.from(first).collect();
    let is_settled = |(index, message): &(usize, &Arc<Message>)| {
        *index < selection.traces.unfinished_from() && !selection.is_current(message)
    };
    let settled = chosen.iter().take_while(|chosen| is_settled(chosen)).count();
    // The results of the last message may follow it.
    let last = chosen[..settled].iter().rposition(|(_, message)| !is_result(message));
    let (settled, rest) = chosen.split_at(last.unwrap_or(0));
    let summary = selection.summary.map(|(_, message)| Arc::clone(message));
    let prefix = match rest.first() {
        Some(&(end, _)) if !settled.is_empty() => Some(Arc::new(match known {
            Some(known) => known.extended(all(settled), end),
            None => RequestPrefix::new(choice, end).extended(summary.iter().cloned().chain(all(settled)), end),
        })),
        // The values of this run go into a prefix of its own. The known prefix may belong to a
        // cached session, which was weighed without them.
        _ => known.map(|known| Arc::new(known.extended([], known.end()))),
    };
    let summary = summary.filter(|_| prefix.is_none());
    Messages::after(prefix, summary.into_iter().chain(all(rest)))
}

fn all(chosen: &[(usize, &Arc<Message>)]) -> impl Iterator<Item = Arc<Message>> {
    paired(chosen).into_iter().map(|indexed| indexed.message)
}
