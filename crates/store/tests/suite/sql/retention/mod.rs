//! Retention: what is removed, what stays whole, and removals of sessions while others are
//! committed.

mod beside_commits;
mod beside_threads;
mod content_races;
mod contents;
mod cost;
mod model;
mod races;
mod removal;
mod rules;
mod tenants;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use store::retention::{Ancestor, RemovalFigures, RetentionRules, SweepCursor};
use store::sessions::Commit;
use store::{Page, Store, StoreError};
use test_support::databases::Engine;
use values::clock::Timestamp;
use values::ids::SessionId;
use values::session::Bundle;

use crate::fixtures::Fixture;

/// Retains everything; the smallest age for a removal is an hour.
pub(crate) const KEEP_ALL: RetentionRules = RetentionRules {
    max_age: None,
    min_age: Duration::from_hours(1),
    keep_last: None,
    events: Duration::from_hours(1),
    deliveries: Duration::from_hours(1),
    unreferenced_contents: Duration::from_hours(1),
};

/// Removes by age alone, in hours.
pub(crate) fn older_than(hours: u64) -> RetentionRules {
    RetentionRules {
        max_age: Some(Duration::from_secs(hours * 3_600)),
        ..KEEP_ALL
    }
}

/// Makes a commit that many hours old.
pub(crate) fn aged(mut commit: Commit, now: Timestamp, hours: i64) -> Commit {
    let time = now - TimeDelta::hours(hours);
    let mut ids = BTreeMap::new();
    for draft in std::iter::once(&mut commit.draft).chain(&mut commit.children) {
        let seconds = u64::try_from(time.timestamp()).unwrap();
        let made = uuid::Timestamp::from_unix(uuid::NoContext, seconds, time.timestamp_subsec_nanos());
        let session_id = SessionId::from_uuid(uuid::Uuid::new_v7(made));
        ids.insert(draft.session_id, session_id);
        draft.session_id = session_id;
        draft.context.updated_at = time;
    }
    for child in &mut commit.children {
        child.subagent_of = child.subagent_of.map(|starter| ids[&starter]);
    }
    if let Some(end) = &mut commit.run {
        end.record.summary.session_id = commit.draft.session_id;
        end.record.summary.completed_at = Some(time);
    }
    commit
}

/// Writes an id as the engine does.
pub(crate) fn literal(fixture: &Fixture, id: uuid::Uuid) -> String {
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
    while let Some(position) = next {
        let (figures, after) = store.retention_step(rules, now, &position, limit).await?;
        all += figures;
        next = after;
    }
    Ok(all)
}

impl Fixture {
    /// Sweeps from the beginning to the end.
    pub(crate) async fn sweep(&self, rules: RetentionRules, now: Timestamp, limit: u32) -> RemovalFigures {
        self.try_sweep(rules, now, limit).await.unwrap()
    }

    pub(crate) async fn try_sweep(
        &self,
        rules: RetentionRules,
        now: Timestamp,
        limit: u32,
    ) -> Result<RemovalFigures, StoreError> {
        try_sweep(&self.store, rules, now, limit).await
    }

    /// Stores that the run of the session was on the thread, and whether it moved the thread.
    pub(crate) async fn put_on_thread(&self, session_id: SessionId, thread: &str, has_moved: bool) {
        let id = literal(self, session_id.as_uuid());
        let update = format!("update runs set thread = '{thread}', thread_moved = {has_moved} where session_id = {id}");
        self.database.execute(&update).await.unwrap();
    }

    /// Checks that a session and its ancestors are as they were published.
    pub(crate) async fn assert_whole(&self, bundle: &Bundle, messages: usize) {
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

    /// Returns the ids of the line of a session, and whether each is retained.
    pub(crate) async fn line(&self, session_id: SessionId) -> Vec<(SessionId, bool)> {
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
            let is_retained = |ancestor: &Ancestor| matches!(ancestor, Ancestor::Retained(_));
            line.extend(
                found
                    .iter()
                    .map(|ancestor| (ancestor.session_id(), is_retained(ancestor))),
            );
        }
    }
}
