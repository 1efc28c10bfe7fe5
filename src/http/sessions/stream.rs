//! Histories on the wire, a page of stored messages at a time: however long one is, a reader costs no more than a page.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use futures_util::{Stream, StreamExt as _, stream};

use crate::fair_share::Share;
use crate::http::Api;
use crate::http::paging::PAGE_BYTES;
use crate::http::problem::Problem;
use crate::ids::SessionId;
use crate::message::Message;
use crate::store::MessagePage;
use crate::tenant::TenantId;

/// About how many bytes are encoded at a stretch.
const CHUNK_BYTES: usize = 64 << 10;
/// What reading a page takes for each byte of its JSON: the stored bytes, the text, and the messages.
const READING: u64 = 3;

/// Reads messages of whole stored segments until they make a page: at least one segment, since that is what the store reads. Holds the
/// share that this takes.
pub(super) async fn read_page(
    api: &Api,
    tenant: &TenantId,
    session_id: SessionId,
    from: u64,
    limit: u32,
) -> Result<Option<(MessagePage, Share)>, Problem> {
    let store = &api.service.store;
    let Some(segments) = store.segment_list(tenant, session_id, from, limit).await? else {
        return Ok(None);
    };
    let (mut bytes, mut end) = (0, from);
    for segment in segments {
        if bytes >= PAGE_BYTES as u64 {
            break;
        }
        bytes += segment.bytes;
        end = segment.first_index + segment.message_count;
    }
    let count = u32::try_from(end.saturating_sub(from)).unwrap_or(u32::MAX);
    let cost = usize::try_from(bytes.saturating_mul(READING)).unwrap_or(usize::MAX);
    let share = api.in_flight.take_soon(tenant, cost).await?;
    let page = store.message_list(tenant, session_id, from, count.min(limit)).await?;
    if page
        .as_ref()
        .is_some_and(|page| page.messages.is_empty() && page.from < page.total)
    {
        return Err(Problem::internal(format!(
            "segments of the session {session_id} are missing"
        )));
    }
    Ok(page.map(|page| (page, share)))
}

/// Makes the body of a session: its JSON up to the messages, the messages, and the end.
pub(super) fn body(prefix: Bytes, messages: Messages) -> Body {
    let first = stream::once(async move { Ok(prefix) });
    Body::from_stream(first.chain(messages.into_chunks()))
}

/// The messages of a session on their way out.
pub(super) struct Messages {
    api: Arc<Api>,
    tenant: TenantId,
    session_id: SessionId,
    total: u64,
    /// The index of the next one.
    next: u64,
    page: VecDeque<Arc<Message>>,
    share: Option<Share>,
    is_over: bool,
}

impl Messages {
    /// Reads the first page; `None` when there is no such session.
    pub(super) async fn open(
        api: &Arc<Api>,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<Self>, Problem> {
        let first = read_page(api, tenant, session_id, 0, u32::MAX).await?;
        Ok(first.map(|(page, share)| Self {
            api: Arc::clone(api),
            tenant: tenant.clone(),
            session_id,
            total: page.total,
            next: 0,
            page: page.messages.into(),
            share: Some(share),
            is_over: false,
        }))
    }

    fn into_chunks(self) -> impl Stream<Item = io::Result<Bytes>> + Send {
        stream::unfold(self, |mut messages| async {
            if messages.is_over {
                return None;
            }
            let chunk = messages.chunk().await.inspect_err(|error| {
                messages.is_over = true;
                // The status is sent; the connection is cut, so that the reader knows that something is missing.
                let session_id = messages.session_id;
                tracing::error!(%session_id, error = error.to_string(), "a session can't be sent to its end");
            });
            Some((chunk, messages))
        })
    }

    async fn chunk(&mut self) -> io::Result<Bytes> {
        let mut text = Vec::new();
        while text.len() < CHUNK_BYTES {
            if self.next == self.total {
                self.is_over = true;
                text.extend_from_slice(b"]}}");
                break;
            }
            let Some(message) = self.page.pop_front() else {
                self.read_on().await?;
                continue;
            };
            if self.next > 0 {
                text.push(b',');
            }
            serde_json::to_writer(&mut text, &*message)?;
            self.next += 1;
        }
        Ok(text.into())
    }

    async fn read_on(&mut self) -> io::Result<()> {
        // First, so that whoever waits for room holds none.
        self.share = None;
        let page = read_page(&self.api, &self.tenant, self.session_id, self.next, u32::MAX).await;
        let page = page.map_err(|problem| {
            let cause = problem.cause_chain();
            io::Error::other(cause.unwrap_or_else(|| problem.code().as_str().to_owned()))
        })?;
        let (page, share) = page.ok_or_else(|| io::Error::other("the session was removed meanwhile"))?;
        self.page = page.messages.into();
        self.share = Some(share);
        Ok(())
    }
}
