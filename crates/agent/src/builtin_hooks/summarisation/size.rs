//! The size of the next request: the provider's own count of the last one, or an estimate.

use crate::compilers::{IndexedMessage, Reading};
use crate::model_calls::{estimated_tokens, message_tokens};
use crate::state::AgentState;

/// Estimates the tokens of the messages in the reading.
///
/// The newest completion since the summary reports the tokens of its request, including the system
/// prompt and the tools. Later messages are added by their size. Traces of that request that are no
/// longer sent are subtracted by their size.
pub(super) fn context_tokens(state: &AgentState, reading: &Reading) -> u64 {
    let since = reading.summary.as_ref().map_or(0, |summary| summary.index + 1);
    let counted = reading.messages.iter().rev().find_map(|indexed| {
        let tokens = indexed.message.tags.context_tokens.filter(|_| indexed.index >= since)?;
        Some((indexed, tokens))
    });
    let Some((answer, tokens)) = counted else {
        let system = estimated_tokens(state.context().prompt_bytes());
        let summary = reading.summary.iter().map(of);
        return system + summary.chain(reading.messages.iter().map(of)).sum::<u64>();
    };
    let after = reading.messages.iter().filter(|indexed| indexed.index > answer.index);
    let history = state.store().history();
    let (had, have) = (reading.traces_of(answer, history), reading.traces);
    let before = (reading.start..answer.index).filter_map(|index| Some((index, history.get(index)?)));
    let traces = before.filter(|(_, message)| message.tags.is_trace && !message.tags.is_partial);
    let left_out = traces.filter(|(index, message)| had.have(*index, message) && !have.have(*index, message));
    let left_out: u64 = left_out.map(|(_, message)| message_tokens(message)).sum();
    tokens.saturating_sub(left_out) + after.map(of).sum::<u64>()
}

fn of(indexed: &IndexedMessage) -> u64 {
    message_tokens(&indexed.message)
}
