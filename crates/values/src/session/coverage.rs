//! Coverage: which messages a summary may cover, and at which index a compacted history begins.
//!
//! Compaction adds a message of section `summary`; its tag `covers` names the range that it
//! replaces. Nothing is deleted. A session's `history_start` is the end of the messages that its
//! newest summary covers. The commit computes and checks it. From there on, a history is complete:
//! everything before is covered, and no call is separated from its result.

use super::history::History;
use crate::message::{Coverage, Message, Role};

/// Why a summary can't replace the messages that it covers. Indexes count the messages of the whole
/// history from 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CoverageFault {
    /// The message is in another section than `summary`.
    #[error("the message at index {index} covers others and is not in the section `summary`")]
    NoSummary {
        /// The message's index.
        index: u64,
    },
    /// The range is empty, or the summary itself or a later message is in it.
    #[error("the summary at index {index} covers {from} to {to}, and not one message or more before itself")]
    OutOfBounds {
        /// The summary's index.
        index: u64,
        /// The first index covered.
        from: u64,
        /// The first index not covered.
        to: u64,
    },
    /// The range leaves a gap after the earlier summaries, or ends before they do.
    #[error(
        "the summary at index {index} covers {from} to {to} and does not go on from {start}, up to where all is covered"
    )]
    NoContinuation {
        /// The summary's index.
        index: u64,
        /// The first index covered.
        from: u64,
        /// The first index not covered.
        to: u64,
        /// The end of the range that earlier summaries cover.
        start: u64,
    },
    /// A tool call is covered and its result is not.
    #[error("the summary at index {index} covers a tool call and not its result at index {to}")]
    SeparatesResult {
        /// The summary's index.
        index: u64,
        /// The result's index.
        to: u64,
    },
}

/// Returns the index of the first message that a run needs: the end of the newest summary's range,
/// or 0 without a summary.
///
/// Checks the messages from the index `new` on. `start` is the result for the earlier messages,
/// which must be held from `start` on.
pub fn find_history_start(history: &History, new: usize, start: u64) -> Result<u64, CoverageFault> {
    let mut start = start;
    for (index, message) in (new as u64..).zip(history.iter_from(new)) {
        if let Some(coverage) = message.tags.covers {
            check(history, (index, message), coverage, start)?;
            start = coverage.to;
        }
    }
    Ok(start)
}

fn check(
    history: &History,
    (index, message): (u64, &Message),
    Coverage { from, to }: Coverage,
    start: u64,
) -> Result<(), CoverageFault> {
    if !message.tags.section.is_summary() {
        return Err(CoverageFault::NoSummary { index });
    }
    if from >= to || to > index {
        return Err(CoverageFault::OutOfBounds { index, from, to });
    }
    if from > start || to < start {
        return Err(CoverageFault::NoContinuation { index, from, to, start });
    }
    let next = usize::try_from(to).ok().and_then(|to| history.get(to));
    if next.is_some_and(|next| next.role == Role::Tool) {
        return Err(CoverageFault::SeparatesResult { index, to });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::Timestamp;
    use crate::ids::{MessageId, UuidV7Source};
    use crate::message::{MessageTags, Section};

    fn says(role: Role) -> Arc<Message> {
        let id = MessageId::generate(&UuidV7Source);
        Arc::new(Message::text(id, role, "x", Timestamp::UNIX_EPOCH))
    }

    fn covers(section: &str, from: u64, to: u64) -> Arc<Message> {
        let tags = MessageTags {
            section: Section::new(section),
            covers: Some(Coverage { from, to }),
            ..MessageTags::default()
        };
        Arc::new((*says(Role::User)).clone().with_tags(tags))
    }

    /// Makes a history with messages 0 to 4, of which message 2 is a tool result, followed by the
    /// given ones.
    fn history(more: &[Arc<Message>]) -> History {
        [Role::User, Role::Assistant, Role::Tool, Role::Assistant, Role::User]
            .into_iter()
            .map(says)
            .chain(more.iter().cloned())
            .collect()
    }

    #[test]
    fn the_newest_summary_says_where_to_begin() {
        let notes = Arc::new((*says(Role::User)).clone().with_tags(MessageTags {
            section: Section::new(Section::SUMMARY),
            ..MessageTags::default()
        }));
        for (more, start) in [
            (vec![], 0),
            (vec![notes], 0),
            (vec![covers("summary", 0, 1)], 1),
            (vec![covers("summary", 0, 5)], 5),
            (
                vec![covers("summary", 0, 3), says(Role::User), covers("summary", 0, 4)],
                4,
            ),
            (vec![covers("summary", 0, 3), covers("summary", 3, 6)], 6),
            (vec![covers("summary", 0, 3), covers("summary", 1, 3)], 3),
        ] {
            let history = history(&more);
            assert_eq!(find_history_start(&history, 0, 0), Ok(start), "{more:?}");
            // Messages that an earlier session checked are not checked again.
            assert_eq!(find_history_start(&history, history.len(), start), Ok(start));
            let window = history.held_from(usize::try_from(start).unwrap());
            assert_eq!(find_history_start(&window, 5 + more.len(), start), Ok(start));
        }
    }

    #[test]
    fn bad_coverages_are_reported() {
        for (more, words) in [
            (vec![covers("messages", 0, 1)], "is not in the section"),
            (vec![covers("summary", 0, 6)], "before itself"),
            (vec![covers("summary", 3, 3)], "before itself"),
            (vec![covers("summary", 4, 1)], "before itself"),
            (vec![covers("summary", 0, u64::MAX)], "before itself"),
            (vec![covers("summary", 1, 3)], "go on from 0"),
            (vec![covers("summary", 0, 3), covers("summary", 4, 5)], "go on from 3"),
            (vec![covers("summary", 0, 3), covers("summary", 0, 1)], "go on from 3"),
            (vec![covers("summary", 0, 2)], "not its result at index 2"),
        ] {
            let fault = find_history_start(&history(&more), 0, 0).unwrap_err().to_string();
            assert!(fault.contains(words), "{fault}: {words}");
        }
    }
}
