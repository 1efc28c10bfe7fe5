//! The events of runs on the server: one stream for each run, with the events of its newest
//! attempt.
//!
//! The process that makes the attempt writes the stream, from its log in memory. An entry has the
//! id `SEQUENCE-0`, so an append can be repeated, and a reader's cursor is the number of its last
//! event.
//!
//! `append.lua` compares the stream with each append. If the stream lacks events, after a restart
//! or a failover, it rejects the append. The process then sends all events in its log again. Older
//! events are not repaired: readers find them in the store. An append of a later attempt starts a
//! new stream. An earlier attempt that still writes then learns that it was taken over.

use std::sync::Arc;
use std::time::Duration;

use redis::Cmd;

use super::link::Link;
use super::link_error::LinkError;
use super::queue::RunName;
use super::{keys, stored};
use crate::events::EventLogs;
use crate::local::LocalBoard;
use agent::record::RunEvent;
use values::ids::RunId;
use values::tenant::TenantId;

/// The most events of one read, since each may have about 1 MiB.
const MAX_READ: usize = 64;
/// The most events of one append.
const MAX_APPEND: usize = 512;
/// An append of this many bytes takes no further event.
const MAX_APPEND_BYTES: usize = 1 << 20;

/// An append in flight.
#[derive(Debug)]
pub(super) struct Append {
    pub(super) run: RunName,
    fence: u64,
    starts_stream: bool,
}

/// The result of an append.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Appended {
    /// Whether there is more to send of the run.
    pub(super) is_behind: bool,
    /// Whether the server lost events. Another server may have replaced it unnoticed.
    pub(super) has_lost: bool,
}

/// The entries of a stream: their ids, and their fields by pairs.
type Entries = Vec<(String, Vec<Vec<u8>>)>;

/// Reads the events after a number, without gaps. Returns none if the next one is missing or can't
/// be read.
pub(super) async fn read(
    link: &Link,
    tenant: &TenantId,
    run_id: RunId,
    after: u64,
    limit: usize,
) -> Result<Vec<Arc<RunEvent>>, LinkError> {
    let Some(first) = after.checked_add(1) else {
        return Ok(Vec::new());
    };
    let command = keys::read_events(tenant, run_id, first, limit.min(MAX_READ));
    let entries: Entries = link.send_one(command).await?;
    let mut events = Vec::with_capacity(entries.len());
    for ((id, fields), next) in entries.iter().zip(first..) {
        let event = fields.get(3).and_then(|event| stored::decode_event(event));
        let Some(event) = event.filter(|_| number(id) == Some(next)) else {
            break;
        };
        events.push(Arc::new(event));
    }
    Ok(events)
}

/// Returns the number of a run's last event; 0 if there is none.
pub(super) async fn last(link: &Link, tenant: &TenantId, run_id: RunId) -> Result<u64, LinkError> {
    let command = keys::last_event(tenant, run_id);
    let entries: Entries = link.send_one(command).await?;
    Ok(entries.first().and_then(|(id, _)| number(id)).unwrap_or_default())
}

/// Returns the next append of a run with its command and size; `None` if no event of the run is
/// retained. An append without events compares the server with the log.
pub(super) fn next_append(logs: &EventLogs, run: &RunName, retention: Duration) -> Option<(Append, Cmd, usize)> {
    let (tenant, run_id) = run;
    let unshared = logs.unshared(tenant, *run_id, MAX_APPEND)?;
    let (encoded, bytes) = encode(&unshared.events);
    let command = keys::append(tenant, *run_id, &unshared, &encoded, retention);
    let append = Append {
        run: run.clone(),
        fence: unshared.fence,
        starts_stream: unshared.starts_stream,
    };
    Some((append, command, bytes))
}

/// Records which events the server has after an append.
pub(super) fn note(local: &LocalBoard, append: &Append, answer: i64) -> Appended {
    let run_id = append.run.1;
    let Ok(last) = u64::try_from(answer) else {
        // The attempt was taken over, so its later events are not valid.
        local.events.forget(run_id, append.fence);
        return Appended::default();
    };
    let is_behind = local.events.shared(run_id, append.fence, last);
    local.changes.notify(run_id);
    Appended {
        is_behind,
        has_lost: last == 0 && !append.starts_stream,
    }
}

/// Encodes the first events, at least one, up to the size of an append.
fn encode(events: &[Arc<RunEvent>]) -> (Vec<Vec<u8>>, usize) {
    let mut encoded = Vec::with_capacity(events.len());
    let mut bytes = 0;
    for event in events {
        if bytes >= MAX_APPEND_BYTES {
            break;
        }
        let event = stored::encode_event(event);
        bytes += event.len();
        encoded.push(event);
    }
    (encoded, bytes)
}

fn number(id: &str) -> Option<u64> {
    id.split('-').next()?.parse().ok()
}
