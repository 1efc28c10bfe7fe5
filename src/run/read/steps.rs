//! Reads the completed steps of runs with their messages: of live runs from the board, of ended
//! ones from the store.
//!
//! A page of a live run costs what its steps have. The steps of an ended run are stored as one
//! document, as the messages of its session are: a page scans both, and decodes the asked steps.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use super::run_lookup;
use crate::run::context::RunContext;
use agent::record::StepRecord;
use board::LiveRun;
use store::StoreError;
use store::runs::StepPage;
use tasks::off_thread::off_thread;
use values::ids::{RunId, SessionId, StepId};
use values::json::json_length;
use values::message::Message;
use values::tenant::TenantId;

/// Reads the completed steps of a run with their messages.
pub async fn step_list(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Option<Vec<StepRecord>>, StoreError> {
    let page = step_page(ctx, tenant, run_id, 0..u64::MAX).await?;
    Ok(page.map(|page| page.steps))
}

/// Reads completed steps of a run by their index, with their messages. Leaves out indexes that the
/// run does not have.
pub async fn step_page(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
    indexes: Range<u64>,
) -> Result<Option<StepPage>, StoreError> {
    let Some(run) = run_lookup(ctx, tenant, run_id).await? else {
        return Ok(None);
    };
    // A run that has ended is on the board until the store has its record.
    let live = ctx.board.run_lookup(tenant, run_id).await;
    if let Some(live) = live.filter(|live| live.summary.status == run.summary.status) {
        let total = live.steps.len() as u64;
        let copy = move || steps_at(&live, &indexes).iter().map(|step| (**step).clone()).collect();
        // Always on another thread, since counting the bytes would take as long as the copy.
        let steps = off_thread(tenant, copy).await;
        return Ok(Some(StepPage { steps, total }));
    }
    let page = ctx.store.step_page(tenant, run_id, indexes).await?;
    let mut page = page.unwrap_or_default();
    let session_id = run.summary.has_session().then_some(run.summary.session_id);
    fill_messages(ctx, tenant, session_id, &mut page.steps).await?;
    Ok(Some(page))
}

/// Returns about the size as JSON in bytes of what [`step_page`] reads.
pub async fn steps_size(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
    indexes: Range<u64>,
) -> Result<u64, StoreError> {
    let stored = ctx.store.steps_size(tenant, run_id).await?;
    let live = ctx.board.run_lookup(tenant, run_id).await;
    let Some(live) = live.filter(|live| !live.steps.is_empty()) else {
        return Ok(stored);
    };
    let count = move || {
        let steps = steps_at(&live, &indexes).iter();
        steps.map(|step| json_length(&**step) as u64).sum()
    };
    Ok(stored.max(off_thread(tenant, count).await))
}

fn steps_at<'a>(live: &'a LiveRun, indexes: &Range<u64>) -> &'a [Arc<StepRecord>] {
    &live.steps[positions(indexes, live.steps.len())]
}

/// Returns the part of a range that a list of a length has.
fn positions(indexes: &Range<u64>, length: usize) -> Range<usize> {
    let position = |index: u64| usize::try_from(index).unwrap_or(usize::MAX).min(length);
    let start = position(indexes.start);
    start..position(indexes.end).max(start)
}

/// Groups the messages that steps produced.
pub(super) fn by_step<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> BTreeMap<StepId, Vec<Arc<Message>>> {
    let mut produced: BTreeMap<StepId, Vec<Arc<Message>>> = BTreeMap::new();
    for message in messages {
        if let Some(step_id) = message.tags.step_id {
            produced.entry(step_id).or_default().push(Arc::clone(message));
        }
    }
    produced
}

/// Reads the messages of a session that steps produced; none without a session.
async fn messages_of(
    ctx: &RunContext,
    tenant: &TenantId,
    session_id: Option<SessionId>,
    steps: &[StepRecord],
) -> Result<Vec<Arc<Message>>, StoreError> {
    let Some(session_id) = session_id.filter(|_| !steps.is_empty()) else {
        return Ok(Vec::new());
    };
    let steps = steps.iter().map(|step| step.step_id).collect();
    let found = ctx.store.step_message_list(tenant, session_id, steps).await?;
    Ok(found.unwrap_or_default())
}

/// Adds the messages of a session to the steps that produced them, and those of subagents' sessions
/// to their steps.
fn fill_messages<'a>(
    ctx: &'a RunContext,
    tenant: &'a TenantId,
    session_id: Option<SessionId>,
    steps: &'a mut [StepRecord],
) -> BoxFuture<'a, Result<(), StoreError>> {
    Box::pin(async move {
        let messages = messages_of(ctx, tenant, session_id, steps).await?;
        let mut produced = by_step(&messages);
        for step in steps {
            // The record has the messages of an open step, and the session has none.
            step.messages.extend(produced.remove(&step.step_id).unwrap_or_default());
            for subagent in step.subagents_mut().filter(|subagent| subagent.status.has_session()) {
                fill_messages(ctx, tenant, Some(subagent.session_id), &mut subagent.steps).await?;
            }
        }
        Ok(())
    })
}
