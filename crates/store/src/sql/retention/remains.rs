//! Removes other old rows: records of runs without a session, events, messages to runs, deliveries,
//! idempotency keys, commands for workers whose callers no longer wait, sessions of the console.

use super::Cutoffs;
use crate::error::StoreError;
use crate::retention::{RemovalFigures, SweepCursor};
use crate::rows::{StoredTime, values};
use crate::sql::{Engine, Statement};

const OPERATION: &str = "remove what is too old";

/// The condition that the run of a row is active or ended too recently.
macro_rules! is_recent {
    ($alias:literal, $cutoff:literal) => {
        concat!(
            "exists (
                select 1 from runs r
                where r.tenant = ",
            $alias,
            ".tenant and r.run_id = ",
            $alias,
            ".run_id and (r.completed_at is null or r.completed_at >= ",
            $cutoff,
            "))"
        )
    };
}
pub(super) use is_recent;

const RUNS: &str = "delete from runs
    where (tenant, run_id) in (
        select r.tenant, r.run_id from runs r
        where (not r.publishes or r.status in ('failed', 'cancelled')) and r.completed_at < $1
            and not exists (select 1 from run_queue q where q.tenant = r.tenant and q.run_id = r.run_id)
        order by r.completed_at
        limit $2)
    returning cast(1 as bigint), cast(length(output) + length(steps) as bigint)";

const EVENTS: &str = concat!(
    "delete from run_events
    where (tenant, run_id, first_sequence) in (
        select e.tenant, e.run_id, e.first_sequence from run_events e
        where e.created_at < $1 and not ",
    is_recent!("e", "$1"),
    " order by e.created_at
        limit $2)
    returning cast(1 as bigint), cast(length(payload) as bigint)"
);

const MESSAGES: &str = concat!(
    "delete from run_messages
    where (tenant, run_id, message_key) in (
        select m.tenant, m.run_id, m.message_key from run_messages m
        where m.received_at < $1 and not ",
    is_recent!("m", "$1"),
    " order by m.received_at
        limit $2)
    returning cast(1 as bigint), cast(length(payload) as bigint)"
);

const DELIVERIES: &str = "delete from webhook_deliveries
    where (tenant, delivery_id) in (
        select tenant, delivery_id from webhook_deliveries
        where status <> 'pending' and created_at < $1
        order by created_at
        limit $2)
    returning cast(1 as bigint), cast(length(payload) as bigint)";

const IDEMPOTENCY_KEYS: &str = "delete from idempotency_keys
    where (tenant, key) in (
        select tenant, key from idempotency_keys where expires_at < $1
        order by expires_at
        limit $2)
    returning cast(1 as bigint), cast(0 as bigint)";

const COMMANDS: &str = "delete from environment_commands
    where (tenant, command_id) in (
        select tenant, command_id from environment_commands where awaited_until < $1
        order by awaited_until
        limit $2)
    returning cast(1 as bigint), cast(0 as bigint)";

const CONSOLE_SESSIONS: &str = "delete from console_sessions
    where secret_hash in (
        select secret_hash from console_sessions where expires_at < $1
        order by expires_at
        limit $2)
    returning cast(1 as bigint), cast(0 as bigint)";

/// A kind of row: its statement, the time from which it is retained, and its counter.
type Kind = (
    &'static str,
    fn(&Cutoffs) -> Option<StoredTime>,
    fn(&mut RemovalFigures) -> &mut u64,
);

const KINDS: [Kind; 7] = [
    (RUNS, |cutoffs| cutoffs.forgotten, |figures| &mut figures.runs),
    (EVENTS, |cutoffs| Some(cutoffs.events), |figures| &mut figures.events),
    (
        MESSAGES,
        |cutoffs| Some(cutoffs.events),
        |figures| &mut figures.messages,
    ),
    (
        DELIVERIES,
        |cutoffs| Some(cutoffs.deliveries),
        |figures| &mut figures.deliveries,
    ),
    (
        IDEMPOTENCY_KEYS,
        |cutoffs| Some(cutoffs.now),
        |figures| &mut figures.idempotency_keys,
    ),
    (COMMANDS, |cutoffs| Some(cutoffs.now), |figures| &mut figures.commands),
    (
        CONSOLE_SESSIONS,
        |cutoffs| Some(cutoffs.now),
        |figures| &mut figures.console_sessions,
    ),
];

/// Removes some rows of a kind; continues with the next kind if it found fewer than the limit.
pub(super) async fn sweep_remains(
    engine: &impl Engine,
    cutoffs: Cutoffs,
    kind: usize,
    limit: i64,
) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
    let mut figures = RemovalFigures::default();
    let Some((text, cutoff, counter)) = KINDS.get(kind) else {
        return Ok((figures, None));
    };
    let mut found = 0;
    if let Some(cutoff) = cutoff(&cutoffs) {
        let delete = Statement::with(OPERATION, text, values![cutoff, limit]);
        let tallies = engine.remove(vec![delete], None).await?;
        for tally in &tallies {
            found = tally.count;
            *counter(&mut figures) = tally.add_to(&mut figures);
        }
    }
    let next = if found < limit { kind + 1 } else { kind };
    Ok((figures, Some(SweepCursor::Remains(next))))
}
