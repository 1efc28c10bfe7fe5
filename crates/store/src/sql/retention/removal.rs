//! Removes sessions with everything that belongs to them, in a sweep or at the request of a caller.

use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use super::reclaim::{self, OPERATION};
use super::selection::{BATCH_FREE, BATCH_SESSIONS, FAMILY_STATE, TREE_SESSIONS};
use crate::audit::{Act, AuditAction, Requester};
use crate::error::StoreError;
use crate::retention::{RemovalFigures, SessionRemoval};
use crate::rows::values;
use crate::sql::{Engine, RemovalAct, Statement};
use values::clock::Timestamp;
use values::ids::SessionId;
use values::tenant::TenantId;

/// The most sessions that one transaction of an explicit removal removes, and the most tombstones
/// that it reclaims. Few, since the removals of all tenants wait for each other.
const BATCH: u8 = 100;

/// The most sessions that an explicit removal removes before it reads their tree again. Their ids
/// are in memory.
const ROUND: i64 = 100_000;

/// How long an explicit removal waits in all for commits in flight that continue its sessions.
const COMMIT_WAIT: Duration = Duration::from_secs(1);

/// The pause between two checks for these commits.
const PAUSE: Duration = Duration::from_millis(10);

/// Selects the tombstones of the sessions to remove. The placeholder is the time of the removal.
macro_rules! mark {
    ($now:literal) => {
        concat!(
            " select s.session_id, s.parent_session_id, s.branch_id, s.position, s.depth, s.message_count, s.history_start, ",
            $now,
            ", 0, s.tenant, s.root_hash, s.environment_hash, s.context_hash, s.segment_hash
            from sessions s where (s.tenant, s.session_id) in (select tenant, session_id from going)"
        )
    };
}

/// Begins the insertion of tombstones; a selection, [`MARK`] or [`MARK_BATCH`] and
/// [`Engine::SKIP_LOCKED`] follow.
const INSERT: &str = "insert into removed_sessions (
        session_id, parent_session_id, branch_id, position, depth, message_count, history_start, removed_at, stage, tenant, root_hash,
        environment_hash, context_hash, segment_hash) ";

/// Marks the sessions that a sweep selected.
pub(super) const MARK: &str = mark!("$1");

/// Marks the sessions that a caller removes.
const MARK_BATCH: &str = mark!("$3");

/// Unmarks the families that must stay. Follows the same selection, repeated after the marked
/// sessions are locked. A family stays if a commit in flight shares one of its sessions, so that
/// not all are marked. It also stays if it is needed now. Each mark is one lookup: `offset` stops
/// the planner from reading the whole table.
const SPARE: &str = ", broken as materialized (
        select m.top_id, m.tenant from family m
        where (m.tenant, m.session_id) not in (select tenant, session_id from going)
            or not exists (
                select 1 from removed_sessions x
                where x.tenant = m.tenant and x.session_id = m.session_id
                limit 1 offset 0)
    )
    delete from removed_sessions
    where stage = 0
        and exists (
            select 1 from sessions s
            where s.tenant = removed_sessions.tenant and s.session_id = removed_sessions.session_id)
        and (tenant, session_id) not in (
            select f.tenant, f.session_id from family f
            where not exists (select 1 from broken b where b.tenant = f.tenant and b.top_id = f.top_id))";

/// Records the states of removed sessions. They are checked later, since other sessions may use
/// them.
const STATES: &str = "insert into unused_states (tenant, hash, is_held)
    select tenant, environment_hash, false from removed_sessions where stage = 0
    union
    select tenant, context_hash, false from removed_sessions where stage = 0
    on conflict do nothing";

/// Deletes the rows of a table that belong to runs of marked sessions. Returns their bytes.
macro_rules! delete_of_runs {
    ($table:literal, $bytes:literal) => {
        concat!(
            "delete from ",
            $table,
            " where (tenant, run_id) in (
                select r.tenant, r.run_id from removed_sessions x
                join sessions s on s.tenant = x.tenant and s.session_id = x.session_id
                join runs r on r.tenant = s.tenant and r.run_id = s.run_id and r.session_id = s.session_id
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

/// Removes the selected sessions in one transaction, with everything that only they need.
/// `selected` begins a statement with a text and the selection. `mark` is the marking statement for
/// this selection. If sessions are removed, the act is recorded.
pub(super) async fn sessions_remove<'v, E: Engine>(
    engine: &E,
    selected: impl Fn(&'static str) -> Statement<'v>,
    mark: &'static str,
    reclaimed: i64,
    act: Option<Act>,
) -> Result<RemovalFigures, StoreError> {
    let mut marked = selected(INSERT);
    marked.push(mark);
    marked.push(E::SKIP_LOCKED);
    let mut spared = selected("");
    spared.push(SPARE);
    let delete = |text| Statement::new(OPERATION, text);
    let mut statements = vec![
        marked,
        spared,
        delete(STATES),
        delete(EVENTS),
        delete(MESSAGES),
        delete(DELIVERIES),
        delete(RUNS),
        delete(SESSIONS),
    ];
    statements.extend(reclaim::statements::<E>(reclaimed));
    // Its entry is about the sessions.
    let act = act.map(|act| RemovalAct { act, statement: 7 });
    let tallies = engine.remove(statements, act).await?;
    let mut figures = RemovalFigures::default();
    if let [_, _, _, events, messages, deliveries, runs, sessions, reclaimed @ ..] = tallies.as_slice() {
        figures.events = events.add_to(&mut figures);
        figures.messages = messages.add_to(&mut figures);
        figures.deliveries = deliveries.add_to(&mut figures);
        figures.runs = runs.add_to(&mut figures);
        figures.sessions = sessions.add_to(&mut figures);
        figures += reclaim::figures(reclaimed);
    }
    Ok(figures)
}

/// Removes a session that a caller names. Its tree may be large, so it is read once for many steps.
/// Each step checks that nothing depends on the rows that it removes.
pub(super) async fn session_remove<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    session_id: SessionId,
    descendants: bool,
    by: &Requester,
) -> Result<SessionRemoval, StoreError> {
    let tree_statement = |text: &'static str| {
        let values = values![tenant, session_id, i64::from(descendants)];
        let mut statement = Statement::with(OPERATION, E::TREE, values);
        statement.push(text);
        statement
    };
    let act = Act::of(tenant, by, AuditAction::SessionRemoved, session_id.to_string()).with("descendants", descendants);
    let mut act = Some(act);
    let mut removed = RemovalFigures::default();
    let mut rest_of_wait = COMMIT_WAIT;
    loop {
        let state: Option<(i64, i64, i64)> = tree_statement(FAMILY_STATE).fetch_optional(engine).await?;
        let (present, continuing, used) = state.unwrap_or_default();
        match (present > 0, used > 0, continuing > 0) {
            (false, ..) if removed.sessions > 0 => break,
            (false, ..) => return Ok(SessionRemoval::NotFound),
            (true, true, _) => return Ok(SessionRemoval::InUse),
            (true, false, true) if !descendants => return Ok(SessionRemoval::HasDescendants),
            (true, false, _) => (),
        }
        let tree: Vec<(Uuid,)> = tree_statement(TREE_SESSIONS).bind(ROUND).fetch_all(engine).await?;
        for sessions in tree.chunks(BATCH.into()) {
            let figures = batch_remove(engine, (tenant, session_id), sessions, by.at, act.clone()).await?;
            let is_shared = figures.sessions == 0;
            act = act.filter(|_| is_shared);
            removed += figures;
            if is_shared {
                // A commit in flight shares them. They are in use if it succeeds.
                let Some(rest) = rest_of_wait.checked_sub(PAUSE) else {
                    return Ok(SessionRemoval::InUse);
                };
                rest_of_wait = rest;
                sleep(PAUSE).await;
                break;
            }
        }
    }
    removed += reclaim::reclaim_all(engine, BATCH.into()).await?;
    Ok(SessionRemoval::Removed(removed))
}

/// Removes a batch of sessions of a tree, all or none of them.
async fn batch_remove<E: Engine>(
    engine: &E,
    (tenant, top): (&TenantId, SessionId),
    sessions: &[(Uuid,)],
    now: Timestamp,
    act: Option<Act>,
) -> Result<RemovalFigures, StoreError> {
    let selected = |begin: &'static str| {
        let mut statement = Statement::with(OPERATION, begin, values![tenant, top, now]);
        let mut before = BATCH_SESSIONS;
        // Repeats ids to fill the batch, so that the text is always the same and connections reuse
        // the prepared statement.
        for (session_id,) in sessions.iter().cycle().take(BATCH.into()) {
            statement.push_bind(before, session_id);
            before = ", ";
        }
        statement.push(BATCH_FREE);
        statement
    };
    sessions_remove(engine, selected, MARK_BATCH, BATCH.into(), act).await
}
