//! Checks rows at the end, read from the database and not through the service.

use std::collections::BTreeMap;

use anyhow::Result;
use sqlx::PgConnection;
use uuid::Uuid;

/// Everything that checks compare with.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The runs by their ids.
    pub(crate) runs: BTreeMap<Uuid, StoredRun>,
    /// The sessions.
    pub(crate) sessions: Vec<StoredSession>,
    /// Rows that must not be there, by what they are.
    pub(crate) leftovers: Vec<(&'static str, i64)>,
}

/// A run.
#[derive(Debug)]
pub(crate) struct StoredRun {
    /// Its id.
    pub(crate) run_id: Uuid,
    /// The id of its session, whether there is one or not.
    pub(crate) session_id: Uuid,
    /// Where it stands.
    pub(crate) status: String,
    /// How often it was begun.
    pub(crate) attempts: i32,
    /// The number of its last event.
    pub(crate) event_count: i64,
    /// Why it failed.
    pub(crate) error: Option<String>,
    /// The number of the request; 0 when it has none.
    pub(crate) request: u64,
}

/// The columns that are read of a run.
type RunRow = (Uuid, Uuid, String, i32, i64, Option<String>, String);

/// A session.
#[derive(Debug)]
pub(crate) struct StoredSession {
    /// Its id.
    pub(crate) session_id: Uuid,
    /// The run that published it.
    pub(crate) run_id: Option<Uuid>,
}

impl StoredRun {
    /// Returns whether it must have published its session.
    pub(crate) fn has_session(&self) -> bool {
        matches!(self.status.as_str(), "completed" | "stopped" | "waiting" | "answered")
    }
}

impl Stored {
    /// Reads everything.
    pub(crate) async fn read(connection: &mut PgConnection) -> Result<Self> {
        let columns = "select run_id, session_id, status, attempts, event_count, error, metadata from runs";
        let rows: Vec<RunRow> = sqlx::query_as(columns).fetch_all(&mut *connection).await?;
        let runs = rows.into_iter().map(|row| StoredRun {
            run_id: row.0,
            session_id: row.1,
            status: row.2,
            attempts: row.3,
            event_count: row.4,
            error: row.5,
            request: request_of(&row.6),
        });
        let sessions: Vec<(Uuid, Option<Uuid>)> = sqlx::query_as("select session_id, run_id from sessions")
            .fetch_all(&mut *connection)
            .await?;
        let sessions = sessions
            .into_iter()
            .map(|(session_id, run_id)| StoredSession { session_id, run_id });
        let mut leftovers = Vec::new();
        for (what, sql) in LEFTOVERS {
            let count = sqlx::query_scalar(sql).fetch_one(&mut *connection).await?;
            leftovers.push((what, count));
        }
        Ok(Self {
            runs: runs.map(|run| (run.run_id, run)).collect(),
            sessions: sessions.collect(),
            leftovers,
        })
    }
}

fn request_of(metadata: &str) -> u64 {
    let metadata: serde_json::Value = serde_json::from_str(metadata).unwrap_or_default();
    metadata["request"].as_u64().unwrap_or_default()
}

/// The rows of which none may be left.
const LEFTOVERS: [(&str, &str); 6] = [
    ("runs in the queue", "select count(*) from run_queue"),
    ("entries of journals", "select count(*) from run_journal"),
    (
        "messages that still wait to be applied",
        "select count(*) from run_messages where status = 'received'",
    ),
    (
        "messages of no session",
        "select count(*) from history_segments h where not exists (
            select from sessions s where (s.tenant, s.branch_id, s.position) = (h.tenant, h.branch_id, h.position))",
    ),
    (
        "branches without messages",
        "select count(*) from history_branches b where not exists (
            select from history_segments h where (h.tenant, h.branch_id) = (b.tenant, b.branch_id))",
    ),
    (
        "sessions of runs that published none",
        "select count(*) from sessions s join runs r on (r.tenant, r.run_id) = (s.tenant, s.run_id)
            where r.status not in ('completed', 'stopped', 'waiting', 'answered')",
    ),
];
