//! Reads runs: live ones from the board, ended ones from the store.

mod wait;

mod follow;
mod followed;

mod changes;

mod messages;
mod passages;
mod steps;

pub use self::changes::{ChangeFollower, FollowedChange};
pub use self::follow::{Follower, Following, follow};
pub use self::followed::{DROP_REASONS, Followed, LOGIN_ENDED};
pub use self::messages::{AnsweredStep, RunMessages, is_input, run_messages, run_messages_in};
pub use self::passages::{Passage, PassageRuns, passage_runs, passages_of};
pub use self::steps::{step_list, step_page, steps_size};
pub(super) use self::wait::end_of;
pub use self::wait::run_wait;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, timeout};

use crate::run::context::{RunContext, RunReading};
use crate::run::refusal::Refusal;
use agent::record::{RunRecord, RunStatus, RunSummary};
use store::runs::RunFilter;
use store::{Page, StoreError};
use values::ids::{RunId, SessionId};
use values::json::is_same;
use values::tenant::TenantId;

/// How long a run that began in another process may take to appear on the shared board. A caller
/// may know its id before that.
pub(super) const ON_ITS_WAY: Duration = Duration::from_secs(1);

/// Reads a run, live or ended. An unknown run may just have begun in another process, so with a
/// shared board this waits for it. The wait costs other callers nothing. It applies to any
/// unknown id, since callers may invent ids.
pub async fn run_lookup(ctx: &RunContext, tenant: &TenantId, run_id: RunId) -> Result<Option<RunRecord>, StoreError> {
    let found = find_run(ctx, tenant, run_id).await?;
    if found.is_some() || !ctx.board.is_shared() {
        return Ok(found);
    }
    let shown = ctx.board.run_change(run_id);
    if let Some(found) = find_run(ctx, tenant, run_id).await? {
        return Ok(Some(found));
    }
    // Ignores the timeout, since the next read shows whether the run exists.
    let _ = timeout(ON_ITS_WAY, shown).await;
    find_run(ctx, tenant, run_id).await
}

/// Reads the current record of a run.
pub(super) async fn find_run(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Option<RunRecord>, StoreError> {
    let is_here = ctx.process.active.find(tenant, run_id).is_some();
    if is_here && let Some(live) = ctx.board.run_lookup(tenant, run_id).await {
        return Ok(Some(live.record()));
    }
    // A stored end takes precedence, even if another process still shows the run as live.
    let stored = ctx.store.run_lookup(tenant, run_id).await?;
    if stored.as_ref().is_some_and(|run| run.summary.status.is_terminal()) {
        return Ok(stored);
    }
    let live = ctx.board.run_lookup(tenant, run_id).await;
    Ok(live.map(|live| live.record()).or(stored))
}

/// Reads the current record of a run. Concurrent callers share one read.
pub(super) async fn run_lookup_shared(
    ctx: &RunContext,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Option<Arc<RunRecord>>, StoreError> {
    let slot = ctx.process.run_reads.slot((tenant.clone(), run_id));
    let read = slot
        .read(tenant, Instant::now(), read_shared(ctx, tenant, run_id))
        .await;
    read.value.map_err(|error| StoreError::shared(&error))
}

/// Reads the current record of a run for all callers. Boxed, since the future of a shared read
/// contains it several times.
pub(super) fn read_shared<'a>(ctx: &'a RunContext, tenant: &'a TenantId, run_id: RunId) -> BoxFuture<'a, RunReading> {
    Box::pin(async move {
        let run = find_run(ctx, tenant, run_id).await.map_err(Arc::new)?;
        Ok(run.map(Arc::new))
    })
}

/// Lists runs, live and ended, newest first.
pub async fn run_list(
    ctx: &RunContext,
    tenant: &TenantId,
    filter: &RunFilter,
    page: Page<RunId>,
) -> Result<Vec<RunSummary>, StoreError> {
    let live = ctx.board.run_list(tenant).await;
    let mut runs = ctx.store.run_list(tenant, filter, page).await?;
    let on_page = |run: &RunSummary| page.before.is_none_or(|before| run.run_id < before) && matches(filter, run);
    let shown = live.iter().map(|live| &live.summary).filter(|run| on_page(run));
    runs.extend(shown.cloned());
    // For a run that is stored and on the board, a terminal status takes precedence, then the
    // board.
    runs.sort_by_key(|run| {
        (
            std::cmp::Reverse(run.run_id),
            !run.status.is_terminal(),
            run.status == RunStatus::Queued,
        )
    });
    runs.dedup_by_key(|run| run.run_id);
    runs.truncate(page.limit as usize);
    Ok(runs)
}

/// Finds the run that has reserved a session id but not committed it, and its status.
async fn reserving_run(
    ctx: &RunContext,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<RunSummary>, StoreError> {
    if let Some(run_id) = ctx.board.run_lookup_by_session(tenant, session_id).await
        && let Some(run) = find_run(ctx, tenant, run_id).await?
    {
        return Ok(Some(run.summary));
    }
    ctx.store.run_lookup_by_session(tenant, session_id).await
}

/// Returns the reason why a session does not exist: a run has reserved its id, the id is a
/// run's, or the id is unknown.
pub async fn absent_session(ctx: &RunContext, tenant: &TenantId, session_id: SessionId) -> Refusal {
    let absent = async {
        if let Some(run) = reserving_run(ctx, tenant, session_id).await? {
            if !run.publishes {
                return Ok(Refusal::Unpublished { run_id: run.run_id });
            }
            return Ok(Refusal::SessionNotCommitted {
                session_id,
                run_id: run.run_id,
                run_status: run.status,
            });
        }
        // The run's output may be large, so concurrent callers share the read.
        let run_id = RunId::from_uuid(session_id.as_uuid());
        let run = run_lookup_shared(ctx, tenant, run_id).await?;
        let run = run.filter(|run| run.summary.publishes);
        let of_run = run.map(|run| run.summary.session_id);
        Ok(Refusal::UnknownSession { session_id, of_run })
    };
    absent.await.unwrap_or_else(Refusal::Store)
}

/// Returns the refusal of an unknown run. Says so if the id is a session's.
pub async fn absent_run(ctx: &RunContext, tenant: &TenantId, run_id: RunId) -> Refusal {
    let session_id = SessionId::from_uuid(run_id.as_uuid());
    match ctx.store.session_lookup(tenant, session_id).await {
        Ok(session) => Refusal::UnknownRun {
            run_id,
            session: session.map(Box::new),
        },
        Err(error) => error.into(),
    }
}

fn matches(filter: &RunFilter, run: &RunSummary) -> bool {
    (filter.statuses.is_empty() || filter.statuses.contains(&run.status))
        && filter.agent.as_ref().is_none_or(|agent| run.agent == *agent)
        && filter.model.as_ref().is_none_or(|model| run.model == *model)
        && filter
            .metadata
            .iter()
            .all(|(key, value)| run.metadata.get(key).is_some_and(|own| is_same(own, value)))
        && filter
            .thread
            .as_ref()
            .is_none_or(|thread| run.thread.as_ref() == Some(thread))
        && filter
            .base_session_id
            .is_none_or(|base| run.base_session_id == Some(base))
        && filter.created.from.is_none_or(|from| run.created_at >= from)
        && filter.created.until.is_none_or(|until| run.created_at < until)
}
