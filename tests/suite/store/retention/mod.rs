//! Retention: what goes, what stays whole, and what happens when sessions are removed while others are committed.

mod beside_commits;
mod beside_threads;
mod cost;
mod model;
mod races;
mod removal;
mod rules;
mod tenants;

use std::sync::Arc;
use std::time::Duration;

use agent_runtime::clock::Timestamp;
use agent_runtime::ids::SessionId;
use agent_runtime::session::Bundle;
use agent_runtime::store::{Ancestor, Commit, Page, RemovalFigures, RetentionRules, Store, StoreError, SweepCursor};
use chrono::TimeDelta;

use super::fixtures::Fixture;
use crate::support::databases::Engine;

/// Keeps everything but what is younger than an hour at least.
pub(super) const KEEP_ALL: RetentionRules = RetentionRules {
    max_age: None,
    min_age: Duration::from_hours(1),
    keep_last: None,
    events: Duration::from_hours(1),
    deliveries: Duration::from_hours(1),
};

/// Goes by age alone, in hours.
pub(super) fn older_than(hours: u64) -> RetentionRules {
    RetentionRules {
        max_age: Some(Duration::from_secs(hours * 3_600)),
        ..KEEP_ALL
    }
}

/// Makes a commit as old as that.
pub(super) fn aged(mut commit: Commit, now: Timestamp, hours: i64) -> Commit {
    let time = now - TimeDelta::hours(hours);
    commit.draft.context.updated_at = time;
    for child in &mut commit.children {
        child.context.updated_at = time;
    }
    if let Some(end) = &mut commit.run {
        end.record.summary.completed_at = Some(time);
    }
    commit
}

/// Writes an id in the engine's own way.
pub(super) fn literal(fixture: &Fixture, id: uuid::Uuid) -> String {
    match fixture.database.engine {
        Engine::Postgres => format!("'{id}'"),
        Engine::Sqlite => format!("x'{}'", id.simple()),
    }
}

/// Sweeps a store from the beginning to the end.
async fn try_sweep(
    store: &Arc<dyn Store>,
    rules: RetentionRules,
    now: Timestamp,
    limit: u32,
) -> Result<RemovalFigures, StoreError> {
    let mut all = RemovalFigures::default();
    let mut next = Some(SweepCursor::Start);
    while let Some(place) = next {
        let (figures, after) = store.retention_step(rules, now, &place, limit).await?;
        all += figures;
        next = after;
    }
    Ok(all)
}

impl Fixture {
    /// Sweeps from the beginning to the end.
    pub(super) async fn sweep(&self, rules: RetentionRules, now: Timestamp, limit: u32) -> RemovalFigures {
        self.try_sweep(rules, now, limit).await.unwrap()
    }

    pub(super) async fn try_sweep(
        &self,
        rules: RetentionRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<RemovalFigures, StoreError> {
        try_sweep(&self.store, rules, now, limit).await
    }

    /// Says that the run which made the session was on the thread, and whether it has moved it.
    pub(super) async fn put_on_thread(&self, session_id: SessionId, thread: &str, has_moved: bool) {
        let id = literal(self, session_id.as_uuid());
        let update = format!("update runs set thread = '{thread}', thread_moved = {has_moved} where session_id = {id}");
        self.database.execute(&update).await.unwrap();
    }

    /// Checks that a session is as it was published, and so is all that it continues.
    pub(super) async fn assert_whole(&self, bundle: &Bundle, messages: usize) {
        let id = bundle.head.session_id;
        assert_eq!(self.load(id).await, *bundle);
        let all = self.store.message_list(&self.tenant, id, 0..messages as u64).await;
        assert_eq!(all.unwrap().unwrap().len(), messages);
        let listed = self.store.segment_list(&self.tenant, id, 0, u32::MAX).await;
        assert_eq!(listed.unwrap().unwrap().total, messages as u64);
        let report = self.store.session_verify(&self.tenant, id).await.unwrap().unwrap();
        assert_eq!(report.faults, []);
        assert_eq!(report.sessions + report.removed, bundle.head.depth + 1);
    }

    /// Returns the ids of a session's line, and whether each is kept.
    pub(super) async fn line(&self, session_id: SessionId) -> Vec<(SessionId, bool)> {
        let mut line: Vec<(SessionId, bool)> = Vec::new();
        loop {
            let page = Page {
                before: line.last().map(|(id, _)| *id),
                limit: 3,
            };
            let found = self
                .store
                .session_lineage(&self.tenant, session_id, page)
                .await
                .unwrap();
            let found = found.unwrap();
            if found.is_empty() {
                return line;
            }
            let is_kept = |ancestor: &Ancestor| matches!(ancestor, Ancestor::Kept(_));
            line.extend(found.iter().map(|ancestor| (ancestor.session_id(), is_kept(ancestor))));
        }
    }
}
