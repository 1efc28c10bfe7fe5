//! Runs.

use std::ops::Range;

use async_trait::async_trait;

use super::columns::without_session;
use super::engine::Engine;
use super::statement::{Statement, insert_statement};
use super::text::sql;
use super::usage::usage_statement;
use super::waiting;
use crate::driver_error::nothing_matches;
use crate::error::StoreError;
use crate::query::Page;
use crate::rows::{NewRun, PayloadSizeRow, RunRecordRow, RunRow, StepsRow, UsageRow, values};
use crate::runs::{RunFilter, RunReader, StepPage, UsageQuery, UsageSum, WaitingFilter};
use agent::record::{RunRecord, RunStatus, RunSummary};
use tasks::off_thread::by_size;
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

/// Limits runs to those whose sessions continue a session. Its id and [`BEGUN_WITHOUT_SESSION`]
/// follow.
const CONTINUING: &str =
    " and r.run_id in (select s.run_id from sessions s where s.tenant = $1 and s.parent_session_id = ";
/// Adds the runs without a session that began at a session, whose id follows.
const BEGUN_WITHOUT_SESSION: &str = concat!(
    " union all select n.run_id from runs n where n.tenant = $1 and ",
    without_session!("n"),
    " and n.base_session_id = "
);

#[async_trait]
impl<E: Engine> RunReader for E {
    async fn run_lookup(&self, tenant: &TenantId, run_id: RunId) -> Result<Option<RunRecord>, StoreError> {
        let statement = sql!(
            "select ",
            RunRow::COLUMNS,
            ", r.hidden, r.output_encoding, r.output, r.output_messages, h.message_count as segment_messages,
                h.schema_version as segment_version, h.encoding as segment_encoding, h.payload as segment_payload
            from runs r
            left join sessions s
                on r.output_messages is not null and s.tenant = r.tenant and s.session_id = r.session_id
            left join history_segments h
                on h.tenant = s.tenant and h.branch_id = s.branch_id and h.position = s.position
            where r.tenant = $1 and r.run_id = $2"
        );
        let select = Statement::with("look up run", statement, values![tenant, run_id]);
        let row: Option<RunRecordRow> = select.fetch_optional(self).await?;
        let Some(row) = row else { return Ok(None) };
        by_size(tenant, row.bytes(), move || row.try_into()).await.map(Some)
    }

    async fn run_lookup_by_session(
        &self,
        tenant: &TenantId,
        session_id: SessionId,
    ) -> Result<Option<RunSummary>, StoreError> {
        let statement = sql!(
            "select ",
            RunRow::COLUMNS,
            " from runs r where r.tenant = $1 and r.session_id = $2 and r.run_id = coalesce(
                (select s.run_id from sessions s where s.tenant = $1 and s.session_id = $2),
                (select n.run_id from runs n where n.tenant = $1 and n.session_id = $2 and ",
            without_session!("n"),
            "))"
        );
        let select = Statement::with("look up run", statement, values![tenant, session_id]);
        select.find::<RunRow, _>(self).await
    }

    async fn run_lookup_by_answer(&self, tenant: &TenantId, by: RunId) -> Result<Option<RunSummary>, StoreError> {
        let statement = sql!(
            "select ",
            RunRow::COLUMNS,
            " from runs r where r.tenant = $1 and r.answer_run_id = $2"
        );
        let select = Statement::with("look up run", statement, values![tenant, by]);
        select.find::<RunRow, _>(self).await
    }

    async fn usage_sum(&self, tenant: &TenantId, query: &UsageQuery) -> Result<Vec<UsageSum>, StoreError> {
        usage_statement(tenant, query).list::<UsageRow, _>(self).await
    }

    async fn run_list(
        &self,
        tenant: &TenantId,
        filter: &RunFilter,
        page: Page<RunId>,
    ) -> Result<Vec<RunSummary>, StoreError> {
        let texts = FilterTexts {
            model: filter.model.as_ref().map(ToString::to_string),
            metadata: serde_json::Value::Object(filter.metadata.clone()).to_string(),
        };
        let select = list_statement::<E>(tenant, filter, &texts, page);
        select.list::<RunRow, _>(self).await.or_else(nothing_matches)
    }

    async fn waiting_count(&self, tenant: &TenantId, filter: &WaitingFilter, most: u32) -> Result<u32, StoreError> {
        waiting::waiting_count(self, tenant, filter, most).await
    }

    async fn waiting_sizes(
        &self,
        tenant: &TenantId,
        filter: &WaitingFilter,
        page: Page<RunId>,
    ) -> Result<Vec<(RunId, u64)>, StoreError> {
        waiting::waiting_sizes(self, tenant, filter, page).await
    }

    async fn waiting_list(&self, tenant: &TenantId, run_ids: &[RunId]) -> Result<Vec<RunRecord>, StoreError> {
        waiting::waiting_list(self, tenant, run_ids).await
    }

    async fn steps_size(&self, tenant: &TenantId, run_id: RunId) -> Result<u64, StoreError> {
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
        let select = Statement::with("measure steps", statement, values![tenant, run_id]);
        let rows: Vec<PayloadSizeRow> = select.fetch_all(self).await?;
        Ok(rows.iter().map(PayloadSizeRow::bytes).sum())
    }

    async fn step_page(
        &self,
        tenant: &TenantId,
        run_id: RunId,
        indexes: Range<u64>,
    ) -> Result<Option<StepPage>, StoreError> {
        let statement =
            "select run_id, schema_version, steps_encoding, steps from runs where tenant = $1 and run_id = $2";
        let select = Statement::with("list steps", statement, values![tenant, run_id]);
        let row: Option<StepsRow> = select.fetch_optional(self).await?;
        let Some(row) = row else { return Ok(None) };
        by_size(tenant, row.bytes(), move || row.decode(&indexes))
            .await
            .map(Some)
    }
}

/// Values of a filter as the store has them.
#[derive(Debug)]
struct FilterTexts {
    model: Option<String>,
    metadata: String,
}

/// Selects a page of runs. Where each status has a range of an index, merges the pages of the
/// statuses, so that a page reads at most its length for each of them.
fn list_statement<'v, E: Engine>(
    tenant: &'v TenantId,
    filter: &'v RunFilter,
    texts: &'v FilterTexts,
    page: Page<RunId>,
) -> Statement<'v> {
    let mut select = Statement::with("list runs", "", values![tenant]);
    let statuses = &filter.statuses;
    // The index by status leaves out completed runs, which are most: they are passed in the order
    // of all runs.
    if statuses.len() < 2 || statuses.contains(&RunStatus::Completed) {
        push_page::<E>(&mut select, filter, statuses, texts, page);
        return select;
    }
    let mut before = "select * from (";
    for status in statuses.chunks(1) {
        select.push(before);
        push_page::<E>(&mut select, filter, status, texts, page);
        before = ") page union all select * from (";
    }
    select.push_bind(") page order by run_id desc limit ", page.limit);
    select
}

/// Appends the selection of a page of runs of these statuses.
fn push_page<'v, E: Engine>(
    select: &mut Statement<'v>,
    filter: &'v RunFilter,
    statuses: &[RunStatus],
    texts: &'v FilterTexts,
    page: Page<RunId>,
) {
    select.push(sql!("select ", RunRow::COLUMNS, " from runs r where r.tenant = $1"));
    push_statuses(select, statuses);
    select.push_some(" and r.agent = ", filter.agent.as_ref());
    select.push_some(" and r.model = ", texts.model.as_ref());
    if !filter.metadata.is_empty() {
        E::push_metadata_filter(select, &texts.metadata);
    }
    if let Some(base) = filter.base_session_id {
        select.push_bind(" and r.base_session_id = ", base);
        select.push_bind(CONTINUING, base);
        select.push_bind(BEGUN_WITHOUT_SESSION, base);
        select.push(")");
    }
    select.push_some(" and r.thread = ", filter.thread.as_ref());
    select.push_some(" and r.created_at >= ", filter.created.from);
    select.push_some(" and r.created_at < ", filter.created.until);
    select.push_some(" and r.run_id < ", page.before);
    select.push_bind(" order by r.run_id desc limit ", page.limit);
}

/// Appends the condition that a run has one of these statuses. They are literals, since only then
/// does a planner know how many runs have them, and that the index has these.
fn push_statuses(select: &mut Statement<'_>, statuses: &[RunStatus]) {
    let mut before = if statuses.contains(&RunStatus::Completed) {
        " and r.status in ('"
    } else {
        " and r.status <> 'completed' and r.status in ('"
    };
    for status in statuses {
        select.push(before);
        select.push(status.as_str());
        before = "', '";
    }
    if !statuses.is_empty() {
        select.push("')");
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::SqliteStore;

    /// Returns the index that SQLite reads for each part of a list.
    async fn indexes(filter: &RunFilter) -> Vec<String> {
        let (tenant, page) = (TenantId::anonymous(), Page { before: None, limit: 3 });
        let texts = FilterTexts {
            model: None,
            metadata: "{}".to_owned(),
        };
        let select = list_statement::<SqliteStore>(&tenant, filter, &texts, page);
        select.sqlite_indexes().await
    }

    #[tokio::test]
    async fn each_status_is_read_from_its_range_of_the_index_on_sqlite() {
        use RunStatus::{Completed, Failed, Queued, Running};
        for (statuses, expected) in [
            (&[Failed][..], &["runs_by_status"][..]),
            (&[Queued, Running], &["runs_by_status", "runs_by_status"]),
            (&[Completed, Failed], &["sqlite_autoindex_runs_1"]),
            (&[], &["sqlite_autoindex_runs_1"]),
        ] {
            let filter = RunFilter {
                statuses: statuses.to_vec(),
                ..RunFilter::default()
            };
            assert_eq!(indexes(&filter).await, expected, "{statuses:?}");
        }
    }
}
