//! The steps of a sweep: contents of workspaces, old sessions, sessions that threads no longer
//! need, the segments and states that these leave, and other old rows.

use uuid::Uuid;

use super::contents::sweep_contents;
use super::objects::sweep_objects;
use super::reclaim::OPERATION;
use super::removal::{MARK, sessions_remove};
use super::selection::{AGED, COUNT, OVERTAKEN, Selection};
use super::{Cutoffs, reclaim, remains};
use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::store::error::StoreError;
use crate::store::retention::{RemovalFigures, RetentionRules, SweepCursor};
use crate::store::rows::{StoredTime, values};
use crate::store::sql::{Engine, Statement};

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
        SweepCursor::Aged(time, session_id) => sweep_aged(engine, cutoffs, (*time, *session_id), limit).await,
        SweepCursor::Threads(after) => {
            let after = after.as_ref().map_or(("", ""), |(tenant, name)| (tenant, name));
            sweep_threads(engine, cutoffs, after, limit).await
        }
        SweepCursor::Reclaiming => {
            let (figures, more) = reclaim::reclaim(engine, limit).await?;
            let next = if more {
                SweepCursor::Reclaiming
            } else {
                SweepCursor::Remains(0)
            };
            Ok((figures, Some(next)))
        }
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
    let first_session = SweepCursor::Aged(Timestamp::UNIX_EPOCH, SessionId::from_uuid(Uuid::nil()));
    let next = if sweep_objects(engine, cutoffs, limit).await? {
        SweepCursor::Objects
    } else {
        first_session
    };
    Ok((RemovalFigures::default(), Some(next)))
}

/// Checks the next sessions that are too old.
async fn sweep_aged(
    engine: &impl Engine,
    cutoffs: Cutoffs,
    after: (Timestamp, SessionId),
    limit: i64,
) -> Result<(RemovalFigures, Option<SweepCursor>), StoreError> {
    let done = Some(SweepCursor::Threads(None));
    let Some(aged) = cutoffs.aged else {
        return Ok((RemovalFigures::default(), done));
    };
    let statement = "select created_at, session_id from (
            select created_at, session_id from sessions
            where created_at < $1 and (created_at, session_id) > ($2, $3)
            order by created_at, session_id
            limit $4) next
        order by created_at desc, session_id desc
        limit 1";
    let select = Statement::with(OPERATION, statement, values![aged, after.0, after.1, limit]);
    let last: Option<(StoredTime, Uuid)> = select.fetch_optional(engine).await?;
    let Some(until) = last else {
        return Ok((RemovalFigures::default(), done));
    };
    let selection = Selection {
        text: AGED,
        values: values![cutoffs.now, cutoffs.keep_last, aged, after.0, after.1, until.0, until.1],
    };
    let figures = sweep_selection(engine, &selection, limit).await?;
    Ok((
        figures,
        Some(SweepCursor::Aged(until.0.0, SessionId::from_uuid(until.1))),
    ))
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
    sessions_remove(engine, selected, MARK, limit).await
}
