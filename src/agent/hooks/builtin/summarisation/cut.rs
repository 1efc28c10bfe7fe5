//! Where a summary ends and the retained messages begin.

use super::size::tokens_of;
use crate::agent::compilers::{Placed, Reading};
use crate::ids::ExecutionId;

/// What is kept at the end of a conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keep {
    /// The most messages.
    pub(super) messages: usize,
    /// The most tokens; the newest message, with the results of its calls, is kept in any case.
    pub(super) tokens: u64,
    /// The fewest tokens that are worth a summary.
    pub(super) least_covered: u64,
}

/// Returns the index of the first message to keep; `None` when there is nothing to summarise before it.
///
/// Calls and their results are on the same side, and so are the messages of the current execution's input.
pub(super) fn find_cut(reading: &Reading, keep: Keep, current: Option<ExecutionId>) -> Option<usize> {
    // The input of the current execution is sent in any case and may stand before the start.
    let from = reading.messages.partition_point(|placed| placed.index < reading.start);
    let open = reading.messages.get(from..)?;
    let is_input = |placed: &Placed| {
        let tags = &placed.message.tags;
        current.is_some() && tags.execution_id == current && tags.step_id.is_none() && !tags.is_trace
    };
    let blocks: Vec<&[Placed]> = open
        .chunk_by(|left, right| right.is_result() || (is_input(left) && is_input(right)))
        .collect();
    let (mut kept, mut tokens, mut covered) = (0, 0, blocks.len());
    for block in blocks.iter().rev() {
        let size = tokens_in(block);
        if kept > 0 && (kept + block.len() > keep.messages || tokens + size > keep.tokens) {
            break;
        }
        kept += block.len();
        tokens += size;
        covered -= 1;
    }
    let (covered, rest) = blocks.split_at_checked(covered)?;
    let worth: u64 = covered.iter().map(|block| tokens_in(block)).sum();
    let first_kept = rest.first()?.first()?;
    (!covered.is_empty() && worth >= keep.least_covered).then_some(first_kept.index)
}

fn tokens_in(block: &[Placed]) -> u64 {
    block.iter().map(|placed| tokens_of(&placed.message)).sum()
}
