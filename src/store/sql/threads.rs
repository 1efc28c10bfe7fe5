//! Threads.

use super::engine::Engine;
use super::session_lookup::session_lookup;
use super::statement::Statement;
use crate::clock::Timestamp;
use crate::ids::SessionId;
use crate::record::{ThreadName, ThreadRecord};
use crate::store::error::{StoreError, StoreFuture};
use crate::store::rows::{StoredTime, ThreadPlaceRow, ThreadRow};
use crate::store::threads::{ThreadExpectation, ThreadPage, ThreadPlace, ThreadPut, ThreadStore};
use crate::tenant::TenantId;

impl<E: Engine> ThreadStore for E {
    fn thread_put<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a ThreadName,
        session_id: SessionId,
        expected: ThreadExpectation,
        now: Timestamp,
    ) -> StoreFuture<'a, ThreadPut> {
        Box::pin(thread_put(self, tenant, name, session_id, expected, now))
    }

    fn thread_lookup<'a>(
        &'a self,
        tenant: &'a TenantId,
        name: &'a ThreadName,
    ) -> StoreFuture<'a, Option<ThreadRecord>> {
        Box::pin(thread_lookup(self, tenant, name))
    }

    fn thread_place<'a>(&'a self, tenant: &'a TenantId, name: &'a ThreadName) -> StoreFuture<'a, ThreadPlace> {
        Box::pin(thread_place(self, tenant, name))
    }

    fn thread_list<'a>(&'a self, tenant: &'a TenantId, page: &'a ThreadPage) -> StoreFuture<'a, Vec<ThreadRecord>> {
        Box::pin(thread_list(self, tenant, page))
    }

    fn thread_delete<'a>(&'a self, tenant: &'a TenantId, name: &'a ThreadName) -> StoreFuture<'a, bool> {
        Box::pin(thread_delete(self, tenant, name))
    }
}

/// Creates a thread.
const INSERT: &str = "insert into threads (tenant, name, session_id, version, created_at, updated_at)
    select $1, $2, $3, 1, $4, $4 where ";

/// Moves a thread.
const UPDATE: &str = "update threads set session_id = $3, version = version + 1, updated_at = $4
    where tenant = $1 and name = $2 and ";

const RETURNING: &str = " returning name, session_id, version, created_at, updated_at";

async fn thread_put<E: Engine>(
    engine: &E,
    tenant: &TenantId,
    name: &ThreadName,
    session_id: SessionId,
    expected: ThreadExpectation,
    now: Timestamp,
) -> Result<ThreadPut, StoreError> {
    let text = match expected {
        ThreadExpectation::Anything | ThreadExpectation::Absent => INSERT,
        ThreadExpectation::At(_) => UPDATE,
    };
    let mut put = Statement::new("put thread", text);
    put.push("exists (select 1 from sessions where tenant = $1 and session_id = $3");
    put.push(E::SHARE);
    put.push(")");
    let mut put = put
        .bind(tenant.as_str())
        .bind(name.as_str())
        .bind(session_id.as_uuid())
        .bind(StoredTime(now));
    match expected {
        ThreadExpectation::Anything => put.push(
            " on conflict (tenant, name) do update set session_id = excluded.session_id, \
                version = threads.version + 1, updated_at = excluded.updated_at",
        ),
        ThreadExpectation::Absent => put.push(" on conflict (tenant, name) do nothing"),
        ThreadExpectation::At(from) => {
            put.push_bind(" and session_id is not distinct from ", from.map(SessionId::as_uuid));
        }
    }
    put.push(RETURNING);
    let rows: Vec<ThreadRow> = put.execute_returning(engine).await?;
    if let Some(row) = rows.into_iter().next() {
        return Ok(ThreadPut::Moved(row.try_into()?));
    }
    if session_lookup(engine, tenant, session_id).await?.is_none() {
        return Ok(ThreadPut::NoSession);
    }
    Ok(ThreadPut::Unexpected(thread_lookup(engine, tenant, name).await?))
}

async fn thread_lookup(
    engine: &impl Engine,
    tenant: &TenantId,
    name: &ThreadName,
) -> Result<Option<ThreadRecord>, StoreError> {
    let statement = "select name, session_id, version, created_at, updated_at from threads
        where tenant = $1 and name = $2";
    let row: Option<ThreadRow> = Statement::new("look up thread", statement)
        .bind(tenant.as_str())
        .bind(name.as_str())
        .fetch_optional(engine)
        .await?;
    row.map(ThreadRecord::try_from).transpose()
}

async fn thread_place(engine: &impl Engine, tenant: &TenantId, name: &ThreadName) -> Result<ThreadPlace, StoreError> {
    // Waiting runs begin in the order of their ids.
    let statement = "select
            (select session_id from threads where tenant = $1 and name = $2) as session_id,
            (select r.agent from run_queue q
                join runs r on r.tenant = q.tenant and r.run_id = q.run_id
                where q.tenant = $1 and q.thread = $2 and q.moves_thread and q.control is distinct from 'cancel'
                order by q.is_held desc, q.run_id desc
                limit 1) as agent_ahead";
    let row: Option<ThreadPlaceRow> = Statement::new("find place on thread", statement)
        .bind(tenant.as_str())
        .bind(name.as_str())
        .fetch_optional(engine)
        .await?;
    Ok(row.map(ThreadPlace::from).unwrap_or_default())
}

async fn thread_list(
    engine: &impl Engine,
    tenant: &TenantId,
    page: &ThreadPage,
) -> Result<Vec<ThreadRecord>, StoreError> {
    let statement = "select name, session_id, version, created_at, updated_at from threads
        where tenant = $1 and ($2 is null or name > $2)
        order by name
        limit $3";
    let rows: Vec<ThreadRow> = Statement::new("list threads", statement)
        .bind(tenant.as_str())
        .bind(page.after.as_ref().map(ThreadName::as_str))
        .bind(i64::from(page.limit))
        .fetch_all(engine)
        .await?;
    rows.into_iter().map(ThreadRecord::try_from).collect()
}

async fn thread_delete(engine: &impl Engine, tenant: &TenantId, name: &ThreadName) -> Result<bool, StoreError> {
    let deleted = Statement::new("delete thread", "delete from threads where tenant = $1 and name = $2")
        .bind(tenant.as_str())
        .bind(name.as_str())
        .execute(engine)
        .await?;
    Ok(deleted > 0)
}
