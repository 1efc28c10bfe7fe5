//! Removing sessions: what goes with them, and the removal of one that a caller names.

use super::reclaim;
use super::selection::{FAMILY, FAMILY_STATE};
use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::store::error::StoreError;
use crate::store::retention::{RemovalFigures, SessionRemoval};
use crate::store::rows::{StoredTime, from_row};
use crate::store::sql::{Engine, Shutout, Statement, Tally};
use crate::tenant::TenantId;

pub(super) const OPERATION: &str = "remove sessions";

/// The most sessions that one transaction of an explicit removal removes.
const BATCH: i64 = 1_000;

/// Inserts what is left of the sessions that go, at the time that stands in the given placeholder.
macro_rules! mark {
    ($now:literal) => {
        concat!(
            " select s.session_id, s.parent_session_id, s.branch_id, s.position, s.depth, s.message_count, s.history_start, ",
            $now,
            ", 0, s.tenant, s.root_hash, s.environment_hash, s.context_hash, s.segment_hash
            from sessions s where (s.tenant, s.session_id) in (select tenant, session_id from going)
            returning cast(1 as bigint), cast(0 as bigint)"
        )
    };
}

/// Begins the insertion of what is left of sessions; a selection and [`MARK`] or [`MARK_FAMILY`] follow.
pub(super) const INSERT: &str = "insert into removed_sessions (
        session_id, parent_session_id, branch_id, position, depth, message_count, history_start, removed_at, stage, tenant, root_hash,
        environment_hash, context_hash, segment_hash) ";

/// Marks what a sweep has selected.
pub(super) const MARK: &str = mark!("$1");

/// Marks what a caller has selected.
const MARK_FAMILY: &str = mark!("$5");

/// The rows of a table that belong to runs of marked sessions, deleted; returns their bytes.
macro_rules! delete_of_runs {
    ($table:literal, $bytes:literal) => {
        concat!(
            "delete from ",
            $table,
            " where (tenant, run_id) in (
                select r.tenant, r.run_id from removed_sessions x
                join runs r on r.tenant = x.tenant and r.session_id = x.session_id
                where x.stage = 0)
            returning cast(1 as bigint), cast(",
            $bytes,
            " as bigint)"
        )
    };
}

const EVENTS: &str = delete_of_runs!("run_events", "length(payload)");
const MESSAGES: &str = delete_of_runs!("run_messages", "length(payload)");
const DELIVERIES: &str = delete_of_runs!("webhook_deliveries", "length(payload)");
const RUNS: &str = delete_of_runs!("runs", "length(output) + length(steps)");

const SESSIONS: &str = "delete from sessions
    where (tenant, session_id) in (select tenant, session_id from removed_sessions where stage = 0)
    returning cast(1 as bigint), cast(0 as bigint)";

/// The conditions are looked up one by one: `offset` keeps a planner from joining whole tables.
const STATES: &str = "delete from states
    where (tenant, hash) in (
            select tenant, environment_hash from removed_sessions where stage = 0
            union
            select tenant, context_hash from removed_sessions where stage = 0)
        and not exists (
            select 1 from sessions s where s.tenant = states.tenant and s.environment_hash = states.hash limit 1 offset 0)
        and not exists (
            select 1 from sessions s where s.tenant = states.tenant and s.context_hash = states.hash limit 1 offset 0)
    returning cast(1 as bigint), cast(length(payload) as bigint)";

/// Marks sessions with the statement and removes them, in one transaction, with all that nothing else needs then.
pub(super) async fn sessions_remove(
    engine: &impl Engine,
    mark: Statement<'_>,
    reclaimed: i64,
) -> Result<RemovalFigures, StoreError> {
    let delete = |text| Statement::new(OPERATION, text);
    let mut statements = vec![
        mark,
        delete(EVENTS),
        delete(MESSAGES),
        delete(DELIVERIES),
        delete(RUNS),
        delete(SESSIONS),
        delete(STATES),
    ];
    statements.extend(reclaim::statements(reclaimed));
    let tallies = engine.remove(Shutout::Commits, statements).await?;
    let mut figures = RemovalFigures::default();
    if let [_, events, messages, deliveries, runs, sessions, states, reclaimed @ ..] = tallies.as_slice() {
        figures.events = taken(&mut figures, events);
        figures.messages = taken(&mut figures, messages);
        figures.deliveries = taken(&mut figures, deliveries);
        figures.runs = taken(&mut figures, runs);
        figures.sessions = taken(&mut figures, sessions);
        figures.states = taken(&mut figures, states);
        figures += reclaim::figures(reclaimed);
    }
    Ok(figures)
}

/// Adds the bytes of a tally; returns its number.
pub(super) fn taken(figures: &mut RemovalFigures, tally: &Tally) -> u64 {
    figures.bytes += u64::try_from(tally.bytes).unwrap_or(0);
    u64::try_from(tally.count).unwrap_or(0)
}

/// How a session stands that is to be removed.
struct FamilyState {
    present: i64,
    descendants: i64,
    used: i64,
}

from_row!(FamilyState {
    present,
    descendants,
    used
});

/// Removes a session that a caller names.
pub(super) async fn session_remove<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    session_id: SessionId,
    descendants: bool,
    now: Timestamp,
) -> Result<SessionRemoval, StoreError> {
    let selected = |begin: &'static str| {
        let mut statement = Statement::new(OPERATION, begin);
        statement.push(E::TREE);
        statement
            .bind(tenant.as_str())
            .bind(session_id.as_uuid())
            .bind(i64::from(descendants))
    };
    let mut removed = RemovalFigures::default();
    loop {
        let mut look = selected("");
        look.push(FAMILY_STATE);
        let state: Option<FamilyState> = look.fetch_optional(engine).await?;
        match state {
            Some(FamilyState {
                present: 1..,
                used: 1..,
                ..
            }) => return Ok(SessionRemoval::InUse),
            Some(FamilyState {
                present: 1..,
                descendants: 1..,
                ..
            }) if !descendants => return Ok(SessionRemoval::HasDescendants),
            Some(FamilyState { present: 1.., .. }) => (),
            _ if removed.sessions > 0 => break,
            _ => return Ok(SessionRemoval::NotFound),
        }
        let mut mark = selected(INSERT);
        mark.push(FAMILY);
        mark.push(MARK_FAMILY);
        let mark = mark.bind(BATCH).bind(StoredTime(now));
        removed += sessions_remove(engine, mark, BATCH).await?;
    }
    removed += reclaim::reclaim_all(engine, BATCH).await?;
    Ok(SessionRemoval::Removed(removed))
}
