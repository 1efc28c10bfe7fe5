//! Retention on both engines: the steps of a sweep, explicit removals, and the preview of a sweep.
//!
//! One transaction removes a session. It first inserts a tombstone into `removed_sessions`, and
//! uses it to find everything else. `selection.rs` selects the sessions, `removal.rs` removes their
//! runs and deliveries, and `reclaim.rs` removes the segments and states that they leave. Contents
//! of workspaces are swept on their own: see `contents.rs` and `marking.rs`. `open_calls.rs`
//! removes nothing: it takes runs out of indexes.

mod contents;
mod marking;
mod objects;
mod open_calls;
mod plan;
mod reclaim;
mod remains;
mod removal;
mod selection;
mod sweep;
mod tenant;

use std::time::Duration;

use async_trait::async_trait;

use super::engine::Engine;
use crate::audit::Requester;
use crate::contents::WRITE_PRECISION;
use crate::error::StoreError;
use crate::retention::{RemovalFigures, RetentionRules, RetentionStore, SessionRemoval, SweepCursor};
use crate::rows::StoredTime;
use values::clock::Timestamp;
use values::ids::SessionId;
use values::tenant::TenantId;

#[async_trait]
impl<E: Engine> RetentionStore for E {
    async fn retention_plan(&self, rules: RetentionRules, now: Timestamp) -> Result<RemovalFigures, StoreError> {
        plan::retention_plan(self, rules, now).await
    }

    async fn retention_step(
        &self,
        rules: RetentionRules,
        now: Timestamp,
        cursor: &SweepCursor,
        limit: u32,
    ) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
        sweep::retention_step(self, rules, now, cursor, limit).await
    }

    async fn session_remove(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
        descendants: bool,
        by: &Requester,
    ) -> Result<SessionRemoval, StoreError> {
        removal::session_remove(self, tenant, session_id, descendants, by).await
    }

    async fn tenant_remove(&self, tenant: &TenantId, limit: u32, by: Option<&Requester>) -> Result<u64, StoreError> {
        tenant::tenant_remove(self, tenant, limit, by).await
    }
}

/// Returns the first id of a session that is made after a time, to the millisecond.
fn first_young(aged: StoredTime) -> SessionId {
    SessionId::first_at(aged.0 + chrono::TimeDelta::milliseconds(1))
}

/// Longer than a statement takes that writes contents or removes sessions. Its time is from before
/// its end, at which it becomes visible.
const WRITE_TIME: Duration = Duration::from_mins(5);

/// The retention rules, converted to times.
#[derive(Debug, Clone, Copy)]
struct Cutoffs {
    now: StoredTime,
    /// Sessions created before this time are too old.
    aged: Option<StoredTime>,
    /// Only sessions created before this time may be removed.
    young: StoredTime,
    /// The number of sessions of a thread to retain; 0 if age alone decides.
    keep_last: i64,
    /// Records of runs without a session are removed if the run ended before this time. Their
    /// events are removed first.
    forgotten: Option<StoredTime>,
    events: StoredTime,
    deliveries: StoredTime,
    /// Unreferenced contents are removed if no run has written them since this time. A tenant whose
    /// contents were swept since then is not due.
    contents: StoredTime,
    /// If no contents of a tenant have changed since this time, a sweep that begins now leaves
    /// nothing for the next one.
    settled: StoredTime,
}

impl Cutoffs {
    fn new(rules: RetentionRules, now: Timestamp) -> Self {
        // An age out of range reaches back to 1970.
        let before = |age| {
            let age = chrono::TimeDelta::from_std(age).unwrap_or(chrono::TimeDelta::MAX);
            StoredTime(
                now.checked_sub_signed(age)
                    .unwrap_or(Timestamp::UNIX_EPOCH)
                    .max(Timestamp::UNIX_EPOCH),
            )
        };
        Self {
            now: StoredTime(now),
            aged: rules.max_age.map(|age| before(age.max(rules.min_age))),
            young: before(rules.min_age),
            forgotten: rules
                .max_age
                .map(|age| before(age.max(rules.min_age).max(rules.events))),
            keep_last: rules.keep_last.map_or(0, i64::from),
            events: before(rules.events),
            deliveries: before(rules.deliveries),
            contents: before(rules.unreferenced_contents.saturating_add(WRITE_PRECISION)),
            settled: before(
                rules
                    .unreferenced_contents
                    .saturating_add(2 * WRITE_PRECISION + WRITE_TIME),
            ),
        }
    }
}
