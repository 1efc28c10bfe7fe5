//! Joins segments to a history. The segments may arrive in any order. A gap is an error and never
//! shortens the history.

use std::ops::Range;
use std::sync::Arc;

use super::SEGMENT_VERSION;
use super::messages::{MessagePart, read_messages, read_part};
use super::payload::{DecodeError, StoredPayload, open_payload};
use values::json::json_length;
use values::message::Message;
use values::session::{Hash, History, hash_segment};

/// A stored segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StoredSegment<'a> {
    /// The index of its first message in the whole history.
    pub(crate) first_index: i64,
    /// The number of its messages.
    pub(crate) message_count: i64,
    /// The messages.
    pub(crate) payload: StoredPayload<'a>,
}

impl StoredSegment<'_> {
    /// Decodes some of the messages.
    pub(crate) fn messages(self, part: MessagePart<'_>) -> Result<Vec<Arc<Message>>, DecodeError> {
        let bytes = open_payload(self.payload, SEGMENT_VERSION)?;
        let (messages, found) = read_part(&bytes, part)?;
        check_count(self.message_count, found).map(|()| messages)
    }

    /// Checks and hashes the messages. Also returns the end of the range that the newest summary
    /// among them covers.
    pub(crate) fn inspect(self) -> Result<(Hash, Option<u64>), DecodeError> {
        let bytes = open_payload(self.payload, SEGMENT_VERSION)?;
        let (messages, _) = decode_segment(&bytes, self.message_count)?;
        let mut coverages = messages.iter().rev().filter_map(|message| message.tags.covers);
        Ok((hash_segment(&bytes), coverages.next().map(|coverage| coverage.to)))
    }
}

/// Collects decoded segments.
#[derive(Debug, Default)]
pub(crate) struct HistoryBuilder {
    segments: Vec<(i64, Vec<Arc<Message>>)>,
    /// The bytes of all messages as JSON.
    bytes: usize,
}

impl HistoryBuilder {
    /// Decodes a segment.
    pub(crate) fn push(&mut self, segment: StoredSegment<'_>) -> Result<(), DecodeError> {
        let bytes = open_payload(segment.payload, SEGMENT_VERSION)?;
        let (messages, length) = decode_segment(&bytes, segment.message_count)?;
        self.segments.push((segment.first_index, messages));
        self.bytes += length;
        Ok(())
    }

    /// Returns the bytes of all messages as JSON.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// Returns whether no segment was decoded.
    pub(crate) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Joins the segments. They must contain all of the indexes and end with the last one.
    pub(crate) fn into_history(self, indexes: Range<u64>) -> Result<History, HistoryGap> {
        let bytes = self.bytes;
        let (first_index, messages) = self.join()?;
        let skipped = indexes.start.checked_sub(first_index).ok_or(HistoryGap)?;
        if first_index + messages.len() as u64 != indexes.end {
            return Err(HistoryGap);
        }
        let start = usize::try_from(indexes.start).map_err(|_| HistoryGap)?;
        let skipped = usize::try_from(skipped).map_err(|_| HistoryGap)?;
        let before = messages.get(..skipped).ok_or(HistoryGap)?;
        let bytes = bytes - before.iter().map(|message| json_length(&**message)).sum::<usize>();
        Ok(History::of_bytes(start, messages.into_iter().skip(skipped), bytes))
    }

    /// Returns the messages with the given indexes. Fails if one is missing.
    pub(crate) fn into_range(self, indexes: Range<u64>) -> Result<Vec<Arc<Message>>, HistoryGap> {
        if indexes.is_empty() {
            return Ok(Vec::new());
        }
        let (first_index, mut messages) = self.join()?;
        let offset = |index: u64| {
            index
                .checked_sub(first_index)
                .and_then(|offset| usize::try_from(offset).ok())
        };
        let (start, end) = offset(indexes.start).zip(offset(indexes.end)).ok_or(HistoryGap)?;
        if end > messages.len() {
            return Err(HistoryGap);
        }
        messages.truncate(end);
        Ok(messages.split_off(start))
    }

    /// Returns the messages of all segments, in their order.
    pub(crate) fn into_messages(self) -> Vec<Arc<Message>> {
        self.segments.into_iter().flat_map(|(_, messages)| messages).collect()
    }

    /// Joins the segments, which must not have gaps. Returns the messages and the index of the
    /// first one, or 0 if there are none.
    fn join(mut self) -> Result<(u64, Vec<Arc<Message>>), HistoryGap> {
        // An empty segment has the same first index as the next one, and comes before it.
        self.segments
            .sort_by_key(|(first_index, messages)| (*first_index, messages.len()));
        let first_index = self
            .segments
            .first()
            .map_or(Ok(0), |(first_index, _)| u64::try_from(*first_index));
        let first_index = first_index.map_err(|_| HistoryGap)?;
        let mut joined = Vec::with_capacity(self.segments.iter().map(|(_, messages)| messages.len()).sum());
        for (index, messages) in self.segments {
            if u64::try_from(index) != Ok(first_index + joined.len() as u64) {
                return Err(HistoryGap);
            }
            joined.extend(messages);
        }
        Ok((first_index, joined))
    }
}

/// The segments have a gap.
#[derive(Debug, thiserror::Error)]
#[error("segments of the history are missing or overlap")]
pub(crate) struct HistoryGap;

fn decode_segment(bytes: &[u8], stated: i64) -> Result<(Vec<Arc<Message>>, usize), DecodeError> {
    let (messages, length) = read_messages(bytes)?;
    check_count(stated, messages.len()).map(|()| (messages, length))
}

fn check_count(stated: i64, found: usize) -> Result<(), DecodeError> {
    if i64::try_from(found) == Ok(stated) {
        Ok(())
    } else {
        Err(DecodeError::MessageCount { stated, found })
    }
}
