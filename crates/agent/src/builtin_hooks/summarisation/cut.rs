//! Finds the index at which a summary ends and the retained messages begin.

use crate::compilers::{IndexedMessage, Reading};
use crate::model_calls::message_tokens;
use values::ids::ExecutionId;

/// The part at the end of a conversation that is not summarised.
#[derive(Debug, Clone, Copy)]
pub(super) struct RecentPart {
    /// The most messages.
    pub(super) messages: usize,
    /// The most tokens. The newest message and the results of its calls are always retained.
    pub(super) tokens: u64,
    /// The fewest tokens that are worth a summary.
    pub(super) least_covered: u64,
}

/// Returns the index of the first message that is not summarised; `None` when there is nothing to
/// summarise before it.
///
/// Calls and their results stay together. So do the messages of the current execution's input.
pub(super) fn find_cut(reading: &Reading, keep: RecentPart, current: Option<ExecutionId>) -> Option<usize> {
    // The input of the current execution is always sent and may be before the start.
    let from = reading
        .messages
        .partition_point(|indexed| indexed.index < reading.start);
    let open = reading.messages.get(from..)?;
    let is_input = |indexed: &IndexedMessage| {
        let tags = &indexed.message.tags;
        current.is_some() && tags.execution_id == current && tags.step_id.is_none() && !tags.is_trace
    };
    let blocks: Vec<&[IndexedMessage]> = open
        .chunk_by(|left, right| right.is_result() || (is_input(left) && is_input(right)))
        .collect();
    let (mut retained, mut tokens, mut covered) = (0, 0, blocks.len());
    for block in blocks.iter().rev() {
        let size = tokens_in(block);
        if retained > 0 && (retained + block.len() > keep.messages || tokens + size > keep.tokens) {
            break;
        }
        retained += block.len();
        tokens += size;
        covered -= 1;
    }
    let (covered, rest) = blocks.split_at_checked(covered)?;
    let worth: u64 = covered.iter().map(|block| tokens_in(block)).sum();
    let first_retained = rest.first()?.first()?;
    (!covered.is_empty() && worth >= keep.least_covered).then_some(first_retained.index)
}

fn tokens_in(block: &[IndexedMessage]) -> u64 {
    block.iter().map(|indexed| message_tokens(&indexed.message)).sum()
}
