//! Streams histories page by page, so that a reader takes the memory of one page, regardless of the
//! history's length.
//!
//! The store first returns the sizes of the stored segments. Then a page of whole segments is read.
//! It is encoded in small pieces, as fast as the reader reads. A slow reader holds the rest of one
//! page.

use std::collections::VecDeque;
use std::io;
use std::mem::take;
use std::ops::Range;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::{Stream, StreamExt as _, stream};

use crate::http::auth::Call;
use crate::http::in_flight::reading;
use crate::http::paging::PAGE_BYTES;
use crate::http::problem::Problem;
use store::sessions::SegmentSize;
use tasks::fair_share::Share;
use tasks::off_thread::by_size;
use values::ids::SessionId;
use values::json::{count_reaching, json_length};
use values::message::Message;

/// About how many bytes are encoded at once.
const CHUNK_BYTES: usize = 64 << 10;
/// The memory of a message in addition to its JSON.
const MESSAGE: u64 = 512;

/// A session whose messages are read in order, a page at a time.
pub(super) struct PageReader {
    call: Call,
    session_id: SessionId,
    /// The sizes of the next segments, as listed by the store.
    listed: VecDeque<SegmentSize>,
    /// The number of all messages; 0 before the first list.
    total: u64,
}

/// Messages of whole stored segments.
pub(super) struct Page {
    pub(super) messages: Vec<Arc<Message>>,
    /// The index of the first of them.
    pub(super) from: u64,
    /// The number of messages in the whole history.
    pub(super) total: u64,
    /// The bytes of those segments as JSON.
    pub(super) bytes: usize,
}

/// The plan of the next page.
pub(super) struct Plan {
    indexes: Range<u64>,
    /// The bytes of its segments as JSON.
    bytes: usize,
    /// The bytes that reading it takes.
    pub(super) cost: usize,
}

impl Page {
    /// Returns whether this was the last page.
    pub(super) fn is_last(&self) -> bool {
        self.end() == self.total
    }

    /// Returns the index after the last of the messages.
    pub(super) fn end(&self) -> u64 {
        self.from + self.messages.len() as u64
    }

    /// Truncates the messages after the message that reaches the bytes of a page.
    pub(super) fn cut(mut self) -> Self {
        let lengths = self.messages.iter().map(|message| json_length(&**message));
        let count = count_reaching(PAGE_BYTES, lengths);
        self.messages.truncate(count);
        self
    }

    /// Drops the messages before the last one that, read backwards, reaches the bytes of a page.
    pub(super) fn cut_backwards(mut self) -> Self {
        let lengths = self.messages.iter().rev().map(|message| json_length(&**message));
        let dropped = self.messages.len() - count_reaching(PAGE_BYTES, lengths);
        self.messages.drain(..dropped);
        self.from += dropped as u64;
        self
    }
}

impl PageReader {
    pub(super) fn new(call: &Call, session_id: SessionId) -> Self {
        Self {
            call: call.clone(),
            session_id,
            listed: VecDeque::new(),
            total: 0,
        }
    }

    /// Reads at most `limit` messages from an index on. Reads whole segments, as the store does: as
    /// many as make a page, and at least one. Pages must be consecutive. Returns `None` if the
    /// session does not exist.
    pub(super) async fn read(&mut self, from: u64, limit: u32) -> Result<Option<(Page, Share)>, Problem> {
        let Some(plan) = self.plan(from, limit).await? else {
            return Ok(None);
        };
        let share = self.call.api.in_flight.take_soon(&self.call.tenant, plan.cost).await?;
        Ok(self.load(plan).await?.map(|page| (page, share)))
    }

    /// Reads at most `limit` messages that end right before an index, or at the end of the history.
    /// Reads whole segments, as [`Self::read`] does.
    pub(super) async fn read_before(&mut self, before: u64, limit: u32) -> Result<Option<(Page, Share)>, Problem> {
        let Some(plan) = self.plan_before(before, limit).await? else {
            return Ok(None);
        };
        let share = self.call.api.in_flight.take_soon(&self.call.tenant, plan.cost).await?;
        Ok(self.load(plan).await?.map(|page| (page, share)))
    }

    /// Plans the last page before an index.
    async fn plan_before(&mut self, before: u64, limit: u32) -> Result<Option<Plan>, Problem> {
        let store = &self.call.api.runs.store;
        let Some(head) = store.session_lookup(&self.call.tenant, self.session_id).await? else {
            return Ok(None);
        };
        self.total = head.message_count;
        let end = before.min(self.total);
        let first = end.saturating_sub(limit.into());
        let Some(mut segments) = list_segments(&self.call, self.session_id, first..end).await? else {
            return Ok(None);
        };
        let (mut bytes, mut cost, mut from) = (0, 0_usize, end);
        while bytes < PAGE_BYTES as u64
            && let Some(segment) = segments.pop()
        {
            bytes += segment.bytes;
            cost = cost.saturating_add(cost_of(&segment));
            from = segment.first_index;
        }
        Ok(Some(Plan {
            indexes: from.max(first)..end,
            bytes: to_usize(bytes),
            cost,
        }))
    }

    /// Reads the next page of a response that has begun. Waits for room without a limit.
    async fn read_on(&mut self, from: u64) -> Result<Option<(Page, Share)>, Problem> {
        let Some(plan) = self.plan(from, u32::MAX).await? else {
            return Ok(None);
        };
        let share = self.call.api.in_flight.take(&self.call.tenant, plan.cost).await;
        Ok(self.load(plan).await?.map(|page| (page, share)))
    }

    /// Plans the next page without reading it. Returns `None` if the session does not exist.
    pub(super) async fn plan(&mut self, from: u64, limit: u32) -> Result<Option<Plan>, Problem> {
        if self.listed.is_empty() {
            let store = &self.call.api.runs.store;
            let listed = store
                .segment_list(&self.call.tenant, self.session_id, from, limit)
                .await?;
            let Some(listed) = listed else {
                return Ok(None);
            };
            self.listed = listed.segments.into();
            self.total = listed.total;
        }
        let from = from.min(self.total);
        let (mut bytes, mut cost, mut end) = (0, 0_usize, from);
        while bytes < PAGE_BYTES as u64
            && let Some(segment) = self.listed.pop_front()
        {
            bytes += segment.bytes;
            cost = cost.saturating_add(cost_of(&segment));
            end = segment.end();
        }
        Ok(Some(Plan {
            indexes: from..end.min(from.saturating_add(limit.into())).min(self.total),
            bytes: to_usize(bytes),
            cost,
        }))
    }

    /// Reads the planned page. The caller must hold room for it.
    pub(super) async fn load(&self, plan: Plan) -> Result<Option<Page>, Problem> {
        let store = &self.call.api.runs.store;
        let from = plan.indexes.start;
        let messages = store
            .message_list(&self.call.tenant, self.session_id, plan.indexes)
            .await?;
        Ok(messages.map(|messages| Page {
            messages,
            from,
            total: self.total,
            bytes: plan.bytes,
        }))
    }
}

/// Lists the stored segments with some messages of a session. Returns `None` if the session does
/// not exist.
pub(in crate::http) async fn list_segments(
    call: &Call,
    session_id: SessionId,
    indexes: Range<u64>,
) -> Result<Option<Vec<SegmentSize>>, Problem> {
    let (store, end) = (&call.api.runs.store, indexes.end);
    let mut segments = Vec::new();
    let mut listed_until = indexes.start;
    // A list has at most 256 segments, and sessions without messages have one as well.
    while listed_until < end {
        let limit = u32::try_from(end - listed_until).unwrap_or(u32::MAX);
        let listed = store
            .segment_list(&call.tenant, session_id, listed_until, limit)
            .await?;
        let Some(listed) = listed else { return Ok(None) };
        listed_until = listed.segments.last().map_or(end, SegmentSize::end);
        segments.extend(listed.segments);
    }
    Ok(Some(segments))
}

/// Encodes messages until a chunk is complete. `next` is the index of the first one. Returns the
/// remaining messages, their first index, and the text.
fn encode(
    mut page: VecDeque<Arc<Message>>,
    mut next: u64,
    mut text: Vec<u8>,
) -> serde_json::Result<(VecDeque<Arc<Message>>, u64, Vec<u8>)> {
    while text.len() < CHUNK_BYTES
        && let Some(message) = page.pop_front()
    {
        if next > 0 {
            text.push(b',');
        }
        serde_json::to_writer(&mut text, &*message)?;
        next += 1;
    }
    Ok((page, next, text))
}

/// Returns the bytes that reading a segment takes.
fn cost_of(segment: &SegmentSize) -> usize {
    reading(segment.bytes).saturating_add(to_usize(segment.message_count * MESSAGE))
}

/// Converts a number, saturating.
fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

/// Makes the body of a session: its JSON before the messages, the messages, and the end.
pub(super) fn body(prefix: Bytes, messages: Messages) -> Body {
    let first = stream::once(async move { Ok(prefix) });
    Body::from_stream(first.chain(messages.into_chunks()))
}

/// The messages of a session that are being sent.
pub(super) struct Messages {
    reader: PageReader,
    total: u64,
    /// The index of the next message.
    next: u64,
    page: VecDeque<Arc<Message>>,
    /// The bytes of the remaining messages of the page.
    left: usize,
    share: Option<Share>,
    is_over: bool,
}

impl Messages {
    /// Begins with the first page, which holds the share.
    pub(super) fn new(reader: PageReader, first: Page, share: Share) -> Self {
        Self {
            reader,
            total: first.total,
            next: 0,
            page: first.messages.into(),
            left: first.bytes,
            share: Some(share),
            is_over: false,
        }
    }

    fn into_chunks(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(self, |mut messages| async {
            if messages.is_over {
                return None;
            }
            let chunk = messages.chunk().await.inspect_err(|error| {
                messages.is_over = true;
                // The status is sent already. The connection is cut, so that the reader notices
                // that messages are missing.
                let session_id = messages.reader.session_id;
                tracing::error!(%session_id, error = error.to_string(), "a session can't be sent to its end");
            });
            Some((chunk, messages))
        })
    }

    /// Encodes the next chunk. Afterwards the share covers the chunk and the rest of the page.
    async fn chunk(&mut self) -> io::Result<Bytes> {
        let mut text = Vec::new();
        while text.len() < CHUNK_BYTES {
            if self.next == self.total {
                self.is_over = true;
                text.extend_from_slice(b"]}}");
                break;
            }
            if self.page.is_empty() {
                self.read_on().await?;
                continue;
            }
            let (page, next, before) = (take(&mut self.page), self.next, text.len());
            let encode = move || encode(page, next, text);
            (self.page, self.next, text) = by_size(&self.reader.call.tenant, self.left as u64, encode).await?;
            self.left = self.left.saturating_sub(text.len() - before);
        }
        if let Some(share) = &mut self.share {
            share.set(self.left + text.len());
        }
        Ok(text.into())
    }

    async fn read_on(&mut self) -> io::Result<()> {
        // Releases the share first, so that a waiting request holds no room.
        self.share = None;
        let page = self.reader.read_on(self.next).await;
        let page = page.map_err(|problem| {
            let cause = problem.cause_chain();
            io::Error::other(cause.unwrap_or_else(|| problem.code().as_str().to_owned()))
        })?;
        let (page, share) = page.ok_or_else(|| io::Error::other("the session was removed meanwhile"))?;
        self.page = page.messages.into();
        self.left = page.bytes;
        self.share = Some(share);
        Ok(())
    }
}
