//! Reads the event streams of runs in other processes.

use std::sync::Arc;

use super::link::{Link, LinkError};
use super::request::Request;
use super::{keys, stored};
use crate::ids::RunId;
use crate::record::RunEvent;
use crate::tenant::TenantId;

/// The most events of one answer, whatever the reader wants: none is larger than about 1 MiB.
const MAX_EVENTS: usize = 64;

/// The entries of a stream: their ids, and their fields by pairs.
type Entries = Vec<(String, Vec<Vec<u8>>)>;

/// Reads what follows on an event, without gaps; nothing where the next one is not there or can't be read.
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
    let command = keys::read_events(tenant, run_id, first, limit.min(MAX_EVENTS));
    let (entries,): (Entries,) = link.send(&Request::of(tenant, command)).await?;
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

/// Returns the number of a run's last event; 0 when none is there.
pub(super) async fn last(link: &Link, tenant: &TenantId, run_id: RunId) -> Result<u64, LinkError> {
    let command = keys::last_event(tenant, run_id);
    let (entries,): (Entries,) = link.send(&Request::of(tenant, command)).await?;
    Ok(entries.first().and_then(|(id, _)| number(id)).unwrap_or_default())
}

fn number(id: &str) -> Option<u64> {
    id.split('-').next()?.parse().ok()
}
