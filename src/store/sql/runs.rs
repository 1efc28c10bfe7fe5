//! Runs.

use super::engine::Engine;
use super::statement::{Statement, insert_statement};
use super::text::sql;
use crate::ids::{RunId, SessionId};
use crate::off_thread::by_size;
use crate::record::{RunRecord, RunSummary, StepRecord};
use crate::store::driver_error::nothing_matches;
use crate::store::error::{StoreError, StoreFuture};
use crate::store::query::{Page, RunFilter};
use crate::store::rows::{NewRun, PayloadSizeRow, RunRecordRow, RunRow, StepsRow, StoredTime};
use crate::store::traits::RunReader;
use crate::tenant::TenantId;

impl<E: Engine> RunReader for E {
    fn run_lookup<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, Option<RunRecord>> {
        Box::pin(run_lookup(self, tenant, run_id))
    }

    fn run_lookup_by_session<'a>(
        &'a self,
        tenant: &'a TenantId,
        session_id: SessionId,
    ) -> StoreFuture<'a, Option<RunSummary>> {
        Box::pin(run_lookup_by_session(self, tenant, session_id))
    }

    fn run_list<'a>(
        &'a self,
        tenant: &'a TenantId,
        filter: &'a RunFilter,
        page: Page<RunId>,
    ) -> StoreFuture<'a, Vec<RunSummary>> {
        Box::pin(run_list(self, tenant, filter, page))
    }

    fn steps_size<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, u64> {
        Box::pin(steps_size(self, tenant, run_id))
    }

    fn step_list<'a>(&'a self, tenant: &'a TenantId, run_id: RunId) -> StoreFuture<'a, Option<Vec<StepRecord>>> {
        Box::pin(step_list(self, tenant, run_id))
    }
}

/// Inserts the row of a run unless there is one.
pub(crate) fn run_insert_statement<'v>(
    operation: &'static str,
    tenant: &'v TenantId,
    run: &'v NewRun,
) -> Statement<'v> {
    let mut insert = insert_statement(operation, "insert into runs (tenant, ", tenant, run);
    insert.push(" on conflict (tenant, run_id) do nothing");
    insert
}

async fn run_lookup(engine: &impl Engine, tenant: &TenantId, run_id: RunId) -> Result<Option<RunRecord>, StoreError> {
    let statement = sql!(
        "select ",
        RunRow::COLUMNS,
        ", r.output_encoding, r.output from runs r where r.tenant = $1 and r.run_id = $2"
    );
    let row: Option<RunRecordRow> = Statement::new("look up run", statement)
        .bind(tenant.as_str())
        .bind(run_id.as_uuid())
        .fetch_optional(engine)
        .await?;
    let Some(row) = row else { return Ok(None) };
    by_size(tenant, row.bytes(), move || row.try_into()).await.map(Some)
}

async fn run_lookup_by_session(
    engine: &impl Engine,
    tenant: &TenantId,
    session_id: SessionId,
) -> Result<Option<RunSummary>, StoreError> {
    let statement = sql!(
        "select ",
        RunRow::COLUMNS,
        " from runs r where r.tenant = $1 and r.session_id = $2"
    );
    let row: Option<RunRow> = Statement::new("look up run", statement)
        .bind(tenant.as_str())
        .bind(session_id.as_uuid())
        .fetch_optional(engine)
        .await?;
    row.map(RunSummary::try_from).transpose()
}

async fn run_list<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    filter: &RunFilter,
    page: Page<RunId>,
) -> Result<Vec<RunSummary>, StoreError> {
    let statement = sql!("select ", RunRow::COLUMNS, " from runs r where r.tenant = $1");
    let wanted = serde_json::Value::Object(filter.metadata.clone()).to_string();
    let model = filter.model.as_ref().map(ToString::to_string);
    let mut select = Statement::new("list runs", statement).bind(tenant.as_str());
    if let Some(status) = filter.status {
        select.push_bind(" and r.status = ", status.as_str());
    }
    if let Some(agent) = &filter.agent {
        select.push_bind(" and r.agent = ", agent.as_str());
    }
    if let Some(model) = &model {
        select.push_bind(" and r.model = ", model.as_str());
    }
    if !filter.metadata.is_empty() {
        E::push_metadata_filter(&mut select, &wanted);
    }
    if let Some(base) = filter.base_session_id {
        select.push_bind(" and r.base_session_id = ", base.as_uuid());
    }
    if let Some(thread) = &filter.thread {
        select.push_bind(" and r.thread = ", thread.as_str());
    }
    if let Some(from) = filter.created.from {
        select.push_bind(" and r.created_at >= ", StoredTime(from));
    }
    if let Some(until) = filter.created.until {
        select.push_bind(" and r.created_at < ", StoredTime(until));
    }
    if let Some(before) = page.before {
        select.push_bind(" and r.run_id < ", before.as_uuid());
    }
    select.push_bind(" order by r.run_id desc limit ", i64::from(page.limit));
    let rows: Vec<RunRow> = select.fetch_all(engine).await.or_else(nothing_matches)?;
    rows.into_iter().map(RunSummary::try_from).collect()
}

async fn steps_size(engine: &impl Engine, tenant: &TenantId, run_id: RunId) -> Result<u64, StoreError> {
    let statement = "with recursive family (session_id) as (
            select session_id from runs where tenant = $1 and run_id = $2
            union
            select k.session_id from family f join sessions k on k.tenant = $1 and k.subagent_of = f.session_id
        )
        select steps_encoding as encoding, cast(length(steps) as bigint) as stored_bytes,
            substr(steps, 1, 18) as beginning
        from runs where tenant = $1 and run_id = $2
        union all
        select h.encoding, cast(length(h.payload) as bigint), substr(h.payload, 1, 18)
        from family f
        join sessions s on s.tenant = $1 and s.session_id = f.session_id
        join history_segments h on h.tenant = s.tenant and h.branch_id = s.branch_id and h.position = s.position";
    let rows: Vec<PayloadSizeRow> = Statement::new("measure steps", statement)
        .bind(tenant.as_str())
        .bind(run_id.as_uuid())
        .fetch_all(engine)
        .await?;
    Ok(rows.iter().map(PayloadSizeRow::bytes).sum())
}

async fn step_list(
    engine: &impl Engine,
    tenant: &TenantId,
    run_id: RunId,
) -> Result<Option<Vec<StepRecord>>, StoreError> {
    let statement = "select run_id, schema_version, steps_encoding, steps from runs where tenant = $1 and run_id = $2";
    let row: Option<StepsRow> = Statement::new("list steps", statement)
        .bind(tenant.as_str())
        .bind(run_id.as_uuid())
        .fetch_optional(engine)
        .await?;
    let Some(row) = row else { return Ok(None) };
    by_size(tenant, row.bytes(), move || row.try_into()).await.map(Some)
}
