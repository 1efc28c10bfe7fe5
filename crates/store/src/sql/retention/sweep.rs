//! The steps of a sweep: contents of workspaces, old sessions, sessions that threads no longer
//! need, the segments and states that these leave, expired open calls, and other old rows.

use uuid::Uuid;

use super::contents::sweep_contents;
use super::objects::sweep_objects;
use super::open_calls::sweep_open_calls;
use super::reclaim::OPERATION;
use super::removal::{MARK, sessions_remove};
use super::selection::{AGED, COUNT, OVERTAKEN, Selection};
use super::{Cutoffs, first_young, reclaim, remains};
use crate::error::StoreError;
use crate::retention::{RemovalFigures, RetentionRules, SweepCursor};
use crate::rows::values;
use crate::sql::{Engine, Statement};
use values::clock::Timestamp;
use values::ids::SessionId;

/// No session has this id. All ids are above it.
const BEFORE_ALL: SessionId = SessionId::from_uuid(Uuid::nil());

/// Makes one step.
pub(super) async fn retention_step(
    engine: &impl Engine,
    rules: RetentionRules,
    now: Timestamp,
    cursor: &SweepCursor,
    limit: u32,
) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
    let cutoffs = Cutoffs::new(rules, now);
    let limit = i64::from(limit.max(1));
    match cursor {
        SweepCursor::Start => sweep_next_contents(engine, cutoffs, "", limit).await,
        SweepCursor::Contents(after) => sweep_next_contents(engine, cutoffs, after, limit).await,
        SweepCursor::Objects => sweep_next_objects(engine, cutoffs, limit).await,
        SweepCursor::Aged(tenant, after) => sweep_aged(engine, cutoffs, tenant, *after, limit).await,
        SweepCursor::Threads(after) => {
            let after = after.as_ref().map_or(("", ""), |(tenant, name)| (tenant, name));
            sweep_threads(engine, cutoffs, after, limit).await
        }
        SweepCursor::Reclaiming => {
            let (figures, more) = reclaim::reclaim(engine, limit).await?;
            let next = if more {
                SweepCursor::Reclaiming
            } else {
                SweepCursor::OpenCalls
            };
            Ok((figures, Some(next)))
        }
        SweepCursor::OpenCalls => sweep_next_open_calls(engine, cutoffs, limit).await,
        SweepCursor::Remains(kind) => remains::sweep_remains(engine, cutoffs, *kind, limit).await,
    }
}

/// Sweeps the contents of the next tenant. Contents of sessions that this sweep removes later are
/// left to the next one.
async fn sweep_next_contents(
    engine: &impl Engine,
    cutoffs: Cutoffs,
    after: &str,
    limit: i64,
) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
    let (figures, swept) = sweep_contents(engine, cutoffs, after, limit).await?;
    Ok((figures, Some(swept.map_or(SweepCursor::Objects, SweepCursor::Contents))))
}

/// Deletes the next objects that no content refers to.
async fn sweep_next_objects(
    engine: &impl Engine,
    cutoffs: Cutoffs,
    limit: i64,
) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
    let next = if sweep_objects(engine, cutoffs, limit).await? {
        SweepCursor::Objects
    } else {
        SweepCursor::Aged(String::new(), BEFORE_ALL)
    };
    Ok((RemovalFigures::default(), Some(next)))
}

/// Takes the next runs whose open calls have expired out of the indexes of waiting runs.
async fn sweep_next_open_calls(
    engine: &impl Engine,
    cutoffs: Cutoffs,
    limit: i64,
) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
    let next = if sweep_open_calls(engine, cutoffs.now, limit).await? {
        SweepCursor::OpenCalls
    } else {
        SweepCursor::Remains(0)
    };
    Ok((RemovalFigures::default(), Some(next)))
}

/// Checks the next sessions of a tenant that are too old, or goes on to the next tenant.
///
/// The id of a session has the time at which its run was accepted or it was imported, so sessions
/// that are too old have low ids. Of these, the time of the commit decides.
async fn sweep_aged(
    engine: &impl Engine,
    cutoffs: Cutoffs,
    tenant: &str,
    after: SessionId,
    limit: i64,
) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
    let done = Some(SweepCursor::Threads(None));
    let Some(aged) = cutoffs.aged else {
        return Ok((RemovalFigures::default(), done));
    };
    let statement = "select session_id from (
            select session_id from sessions
            where tenant = $1 and session_id > $2 and session_id < $3
            order by session_id
            limit $4) next
        order by session_id desc
        limit 1";
    let select = Statement::with(OPERATION, statement, values![tenant, after, first_young(aged), limit]);
    let last: Option<(Uuid,)> = select.fetch_optional(engine).await?;
    let Some((until,)) = last else {
        let statement = "select tenant from sessions where tenant > $1 order by tenant limit 1";
        let select = Statement::with(OPERATION, statement, values![tenant]);
        let next: Option<(String,)> = select.fetch_optional(engine).await?;
        let next = next.map_or(done, |(tenant,)| Some(SweepCursor::Aged(tenant, BEFORE_ALL)));
        return Ok((RemovalFigures::default(), next));
    };
    let selection = Selection {
        text: AGED,
        values: values![cutoffs.now, cutoffs.keep_last, aged, tenant, after, until],
    };
    let figures = sweep_selection(engine, &selection, limit).await?;
    let next = SweepCursor::Aged(tenant.to_owned(), SessionId::from_uuid(until));
    Ok((figures, Some(next)))
}

/// Checks the next threads. Repeats the same threads as long as it removes something.
async fn sweep_threads(
    engine: &impl Engine,
    cutoffs: Cutoffs,
    after: (&str, &str),
    limit: i64,
) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
    let done = Some(SweepCursor::Reclaiming);
    if cutoffs.keep_last == 0 {
        return Ok((RemovalFigures::default(), done));
    }
    let statement = "select tenant, name from threads
        where (tenant, name) > ($1, $2)
        order by tenant, name
        limit $3";
    let select = Statement::with(OPERATION, statement, values![after.0, after.1, limit]);
    let mut threads: Vec<(String, String)> = select.fetch_all(engine).await?;
    let Some(last) = threads.pop() else {
        return Ok((RemovalFigures::default(), done));
    };
    let Cutoffs {
        now, keep_last, young, ..
    } = cutoffs;
    let selection = Selection {
        text: OVERTAKEN,
        values: values![now, keep_last, young, after.0, after.1, &last.0, &last.1, limit],
    };
    let figures = sweep_selection(engine, &selection, limit).await?;
    let next = if figures.sessions > 0 {
        Some(after)
            .filter(|after| *after != ("", ""))
            .map(|(tenant, name)| (tenant.to_owned(), name.to_owned()))
    } else {
        Some(last)
    };
    Ok((figures, Some(SweepCursor::Threads(next))))
}

/// Removes the selected sessions.
async fn sweep_selection(
    engine: &impl Engine,
    selection: &Selection<'_>,
    limit: i64,
) -> Result<RemovalFigures, StoreError> {
    let mut count = selection.begin(OPERATION, "");
    count.push(COUNT);
    let found: Option<(i64,)> = count.fetch_optional(engine).await?;
    if found.is_none_or(|(found,)| found == 0) {
        return Ok(RemovalFigures::default());
    }
    let selected = |begin| selection.begin(OPERATION, begin);
    sessions_remove(engine, selected, MARK, limit, None).await
}
