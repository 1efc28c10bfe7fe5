//! Counts the rows that a whole sweep would remove: contents of workspaces as the sweep finds them,
//! and all other rows in one statement. Changes nothing.

use super::contents::plan_contents;
use super::remains::is_recent;
use super::selection::ALL;
use super::{Cutoffs, first_young};
use crate::error::StoreError;
use crate::retention::{RemovalFigures, RetentionRules};
use crate::rows::{StoredTime, row, values};
use crate::sql::{Engine, Statement};
use values::clock::Timestamp;

/// `removed` are the sessions that were or would be removed. `needed` has the ones from which a
/// retained session descends. `$1` is the current time. `$3` and `$4` are the placeholders of
/// `ALL`. `$5` to `$7` are the times from which events, deliveries and runs without a session are
/// retained. `$8` is the first id of a session that is too young.
const FIGURES: &str = concat!(
    ", removed as (
        select s.tenant, s.session_id, s.parent_session_id, s.branch_id, s.position
        from going g join sessions s on s.tenant = g.tenant and s.session_id = g.session_id
        union all
        select tenant, session_id, parent_session_id, branch_id, position from removed_sessions
    ), needed (tenant, session_id, parent_session_id) as (
        select g.tenant, g.session_id, g.parent_session_id
        from removed g
        join sessions c on c.tenant = g.tenant and c.parent_session_id = g.session_id
        left join going x on x.tenant = c.tenant and x.session_id = c.session_id
        where x.session_id is null
        union
        select p.tenant, p.session_id, p.parent_session_id
        from needed n join removed p on p.tenant = n.tenant and p.session_id = n.parent_session_id
    ), dead_segments as (
        select h.payload
        from removed g
        join history_segments h on h.tenant = g.tenant and h.branch_id = g.branch_id and h.position = g.position
        left join needed n on n.tenant = g.tenant and n.session_id = g.session_id
        where n.session_id is null
    ), touched_states as (
        select s.tenant, s.environment_hash as hash
        from going g join sessions s on s.tenant = g.tenant and s.session_id = g.session_id
        union
        select s.tenant, s.context_hash
        from going g join sessions s on s.tenant = g.tenant and s.session_id = g.session_id
    ), dead_states as (
        select t.payload
        from touched_states d
        join states t on t.tenant = d.tenant and t.hash = d.hash
        where not exists (
                select 1 from sessions s
                left join going x on x.tenant = s.tenant and x.session_id = s.session_id
                where s.tenant = d.tenant and s.environment_hash = d.hash and x.session_id is null)
            and not exists (
                select 1 from sessions s
                left join going x on x.tenant = s.tenant and x.session_id = s.session_id
                where s.tenant = d.tenant and s.context_hash = d.hash and x.session_id is null)
    ), dead_runs as (
        select r.tenant, r.run_id, r.output, r.steps
        from going g
        join sessions s on s.tenant = g.tenant and s.session_id = g.session_id
        join runs r on r.tenant = s.tenant and r.run_id = s.run_id and r.session_id = s.session_id
    ), forgotten_runs as (
        select r.output, r.steps from runs r
        where (not r.publishes or r.status in ('failed', 'cancelled')) and r.completed_at < $7
            and not exists (select 1 from run_queue q where q.tenant = r.tenant and q.run_id = r.run_id)
    ), dead_events as (
        select e.payload from run_events e left join dead_runs d on d.tenant = e.tenant and d.run_id = e.run_id
        where d.run_id is not null or (e.created_at < $5 and not ",
    is_recent!("e", "$5"),
    ")
    ), dead_messages as (
        select m.payload from run_messages m left join dead_runs d on d.tenant = m.tenant and d.run_id = m.run_id
        where d.run_id is not null or (m.received_at < $5 and not ",
    is_recent!("m", "$5"),
    ")
    ), dead_deliveries as (
        select w.payload from webhook_deliveries w left join dead_runs d on d.tenant = w.tenant and d.run_id = w.run_id
        where d.run_id is not null or (w.status <> 'pending' and w.created_at < $6)
    )
    select
        (select count(*) from going) as sessions,
        (select count(*) from dead_segments) as segments,
        (select count(*) from dead_states) as states,
        (select count(*) from dead_runs) + (select count(*) from forgotten_runs) as runs,
        (select count(*) from dead_events) as events,
        (select count(*) from dead_messages) as messages,
        (select count(*) from dead_deliveries) as deliveries,
        (select count(*) from idempotency_keys where expires_at < $1) as idempotency_keys,
        (select count(*) from environment_commands where awaited_until < $1) as commands,
        (select count(*) from console_sessions where expires_at < $1) as console_sessions,
        cast((select coalesce(sum(length(payload)), 0) from dead_segments)
            + (select coalesce(sum(length(payload)), 0) from dead_states)
            + (select coalesce(sum(length(output) + length(steps)), 0) from dead_runs)
            + (select coalesce(sum(length(output) + length(steps)), 0) from forgotten_runs)
            + (select coalesce(sum(length(payload)), 0) from dead_events)
            + (select coalesce(sum(length(payload)), 0) from dead_messages)
            + (select coalesce(sum(length(payload)), 0) from dead_deliveries) as bigint) as bytes"
);

row! {
    /// The row with the counts.
    struct FiguresRow {
        sessions: i64,
        segments: i64,
        states: i64,
        runs: i64,
        events: i64,
        messages: i64,
        deliveries: i64,
        idempotency_keys: i64,
        commands: i64,
        console_sessions: i64,
        bytes: i64,
    }
}

/// Counts the rows that a whole sweep would remove.
pub(super) async fn retention_plan(
    engine: &impl Engine,
    rules: RetentionRules,
    now: Timestamp,
) -> Result<RemovalFigures, StoreError> {
    let cutoffs = Cutoffs::new(rules, now);
    let never = StoredTime(Timestamp::UNIX_EPOCH);
    let values = values![
        cutoffs.now,
        cutoffs.keep_last,
        cutoffs.aged.unwrap_or(never),
        cutoffs.young,
        cutoffs.events,
        cutoffs.deliveries,
        cutoffs.forgotten.unwrap_or(never),
        first_young(cutoffs.aged.unwrap_or(never))
    ];
    let mut select = Statement::with("plan retention", ALL, values);
    select.push(FIGURES);
    let row: Option<FiguresRow> = select.fetch_optional(engine).await?;
    let mut figures = row.map(RemovalFigures::from).unwrap_or_default();
    plan_contents(engine, cutoffs, &mut figures).await?;
    Ok(figures)
}

impl From<FiguresRow> for RemovalFigures {
    fn from(row: FiguresRow) -> Self {
        let count = |count: i64| u64::try_from(count).unwrap_or(0);
        Self {
            sessions: count(row.sessions),
            segments: count(row.segments),
            states: count(row.states),
            runs: count(row.runs),
            events: count(row.events),
            messages: count(row.messages),
            deliveries: count(row.deliveries),
            idempotency_keys: count(row.idempotency_keys),
            commands: count(row.commands),
            console_sessions: count(row.console_sessions),
            contents: 0,
            bytes: count(row.bytes),
        }
    }
}
