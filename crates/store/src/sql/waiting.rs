//! Waiting runs: those whose open calls nobody has answered. The transaction that accepts answers
//! changes the status of the run. The one that ends their run without a session changes it back.
//! So the status alone shows whether the calls are open. A child of the session does not: a change
//! of its files makes a child that waits, too.
//!
//! A count and a list of sizes read one index, from the newest waiting run on. Each passes the runs
//! in the index that have expired since the last sweep, and reads as many rows as the page has, or
//! as it counts. With an agent or a thread, it also reads the rows of the waiting runs before
//! these.

use super::engine::Engine;
use super::statement::Statement;
use super::text::sql;
use crate::driver_error::nothing_matches;
use crate::error::StoreError;
use crate::query::Page;
use crate::rows::{RunRow, WaitingRunRow, WaitingSizeRow, values};
use crate::runs::{Answerer, WaitingFilter};
use agent::record::RunRecord;
use tasks::off_thread::by_size;
use values::ids::RunId;
use values::tenant::TenantId;

/// The unit of the number of ids in a statement.
const LISTED: usize = 50;

/// Counts waiting runs.
pub(super) async fn waiting_count(
    engine: &impl Engine,
    tenant: &TenantId,
    filter: &WaitingFilter,
    most: u32,
) -> Result<u32, StoreError> {
    let mut select = select_waiting("count waiting runs", "select count(*) from (select 1", tenant, filter);
    select.push_bind(" limit ", most);
    select.push(") waiting");
    let row: Option<(i64,)> = select.fetch_optional(engine).await.or_else(nothing_matches)?;
    let count = row.map_or(0, |(count,)| count);
    Ok(u32::try_from(count).unwrap_or(most))
}

/// Lists waiting runs with the sizes of their outputs.
pub(super) async fn waiting_sizes(
    engine: &impl Engine,
    tenant: &TenantId,
    filter: &WaitingFilter,
    page: Page<RunId>,
) -> Result<Vec<(RunId, u64)>, StoreError> {
    let select = sizes_statement(tenant, filter, page);
    let rows: Vec<WaitingSizeRow> = select.fetch_all(engine).await.or_else(nothing_matches)?;
    let sizes = rows.iter().map(|row| (RunId::from_uuid(row.run_id), row.size.bytes()));
    Ok(sizes.collect())
}

fn sizes_statement<'v>(tenant: &'v TenantId, filter: &'v WaitingFilter, page: Page<RunId>) -> Statement<'v> {
    let begin = "select r.run_id, r.output_encoding as encoding, cast(length(r.output) as bigint) as stored_bytes,
            substr(r.output, 1, 18) as beginning";
    let mut select = select_waiting("list waiting runs", begin, tenant, filter);
    select.push_some(" and r.run_id < ", page.before);
    select.push_bind(" order by r.run_id desc limit ", page.limit);
    select
}

/// Reads those of the given runs that wait, with their open calls.
pub(super) async fn waiting_list(
    engine: &impl Engine,
    tenant: &TenantId,
    run_ids: &[RunId],
) -> Result<Vec<RunRecord>, StoreError> {
    if run_ids.is_empty() {
        return Ok(Vec::new());
    }
    let rows: Vec<WaitingRunRow> = list_statement(tenant, run_ids).fetch_all(engine).await?;
    let bytes = rows.iter().map(WaitingRunRow::bytes).sum();
    let decode = move || rows.into_iter().map(RunRecord::try_from).collect();
    by_size(tenant, bytes, decode).await
}

fn list_statement<'v>(tenant: &'v TenantId, run_ids: &'v [RunId]) -> Statement<'v> {
    let statement = sql!(
        "select ",
        RunRow::COLUMNS,
        ", r.output_encoding, r.output from runs r where r.tenant = $1 and r.status = 'waiting'"
    );
    let mut select = Statement::with("read waiting runs", statement, values![tenant]);
    let mut before = " and r.run_id in (";
    // Repeats ids to fill the list, so that there are few texts and connections reuse the prepared
    // statements.
    let filled = run_ids.len().next_multiple_of(LISTED);
    for run_id in run_ids.iter().cycle().take(filled) {
        select.push_bind(before, run_id);
        before = ", ";
    }
    select.push(") order by r.run_id desc");
    select
}

/// Begins a selection of waiting runs. The status is a literal, since it is a condition of the
/// indexes.
fn select_waiting<'v>(
    operation: &'static str,
    begin: &'static str,
    tenant: &'v TenantId,
    filter: &'v WaitingFilter,
) -> Statement<'v> {
    let mut select = Statement::with(operation, begin, values![tenant, filter.now]);
    select.push(" from runs r where r.tenant = $1 and r.status = 'waiting'");
    select.push(match filter.answerer {
        Answerer::Person => " and r.person_until > $2",
        Answerer::Client => " and r.client_until > $2",
    });
    select.push_some(" and r.agent = ", filter.agent.as_ref());
    select.push_some(" and r.thread_moved and r.thread = ", filter.thread.as_ref());
    select
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::clock::{Clock as _, SystemClock};

    #[tokio::test]
    async fn waiting_runs_are_read_from_their_index_on_sqlite() {
        let tenant = TenantId::anonymous();
        let page = Page { before: None, limit: 3 };
        for (answerer, index) in [
            (Answerer::Person, "runs_waiting_for_person"),
            (Answerer::Client, "runs_waiting_for_client"),
        ] {
            let plain = WaitingFilter {
                answerer,
                now: SystemClock.now(),
                agent: None,
                thread: None,
            };
            let of_agent = WaitingFilter {
                agent: Some("a".to_owned()),
                ..plain.clone()
            };
            let on_thread = WaitingFilter {
                thread: "t".parse().ok(),
                ..plain.clone()
            };
            for filter in [plain, of_agent, on_thread] {
                let select = sizes_statement(&tenant, &filter, page);
                assert_eq!(select.sqlite_indexes().await, [index], "{filter:?}");
            }
        }
        let run_ids = [RunId::from_uuid(uuid::Uuid::nil())];
        let select = list_statement(&tenant, &run_ids);
        assert_eq!(select.sqlite_indexes().await, ["sqlite_autoindex_runs_1"]);
    }
}
