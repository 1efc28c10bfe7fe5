//! Threads.
//!
//! A caller moves or deletes a thread first, and then looks for active runs, in one transaction.
//! The row of the thread is locked by then. So a run is either seen here, or it is accepted later
//! and finds the thread as it is then.

use async_trait::async_trait;
use uuid::Uuid;

use super::connection::{Connection, Ended};
use super::engine::Engine;
use super::statement::Statement;
use crate::error::StoreError;
use crate::rows::{ThreadRow, values};
use crate::sessions::SessionReader as _;
use crate::threads::{ThreadDelete, ThreadExpectation, ThreadPage, ThreadPut, ThreadStart, ThreadStore};
use agent::record::{ThreadName, ThreadRecord};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::tenant::TenantId;

#[async_trait]
impl<E: Engine> ThreadStore for E {
    async fn thread_put(
        &self,
        tenant: &TenantId,
        name: &ThreadName,
        session_id: SessionId,
        expected: ThreadExpectation,
        now: Timestamp,
    ) -> Result<ThreadPut, StoreError> {
        let (owner, thread) = (tenant.clone(), name.clone());
        let putting = self.transact(PUT, move |mut connection| {
            Box::pin(async move {
                let put = put_statement::<E>(&owner, &thread, session_id, expected, now);
                let Some(row) = connection.fetch_optional::<ThreadRow>(put).await? else {
                    return Ok(Ended::RolledBack(Ok(None)));
                };
                Ok(match active_run(&mut connection, &owner, &thread).await? {
                    Some(active) => Ended::RolledBack(Err(active)),
                    None => Ended::Committed(Ok(Some(row))),
                })
            })
        });
        match putting.await? {
            Ok(Some(row)) => return Ok(ThreadPut::Moved(row.try_into()?)),
            Ok(None) => (),
            Err(active) => return Ok(ThreadPut::Busy(active)),
        }
        if self.session_lookup(tenant, session_id).await?.is_none() {
            return Ok(ThreadPut::NoSession);
        }
        Ok(ThreadPut::Unexpected(self.thread_lookup(tenant, name).await?))
    }

    async fn thread_lookup(&self, tenant: &TenantId, name: &ThreadName) -> Result<Option<ThreadRecord>, StoreError> {
        let statement = "select name, session_id, version, created_at, updated_at from threads
            where tenant = $1 and name = $2";
        let select = Statement::with("look up thread", statement, values![tenant, name]);
        select.find::<ThreadRow, _>(self).await
    }

    async fn thread_start(&self, tenant: &TenantId, name: &ThreadName) -> Result<ThreadStart, StoreError> {
        // Waiting runs begin in the order of their ids.
        let statement = "select
                (select session_id from threads where tenant = $1 and name = $2) as session_id,
                (select r.agent from run_queue q
                    join runs r on r.tenant = q.tenant and r.run_id = q.run_id
                    where q.tenant = $1 and q.thread = $2 and q.moves_thread and q.control is distinct from 'cancel'
                    order by q.is_held desc, q.run_id desc
                    limit 1) as agent_ahead";
        let select = Statement::with("find start on thread", statement, values![tenant, name]);
        let row: Option<(Option<Uuid>, Option<String>)> = select.fetch_optional(self).await?;
        let (session_id, agent_ahead) = row.unwrap_or_default();
        Ok(ThreadStart {
            session_id: session_id.map(SessionId::from_uuid),
            agent_ahead,
        })
    }

    async fn thread_list(&self, tenant: &TenantId, page: &ThreadPage) -> Result<Vec<ThreadRecord>, StoreError> {
        let statement = "select name, session_id, version, created_at, updated_at from threads
            where tenant = $1 and ($2 is null or name > $2)
            order by name
            limit $3";
        let values = values![tenant, page.after.as_ref(), page.limit];
        let select = Statement::with("list threads", statement, values);
        select.list::<ThreadRow, _>(self).await
    }

    async fn thread_delete(&self, tenant: &TenantId, name: &ThreadName) -> Result<ThreadDelete, StoreError> {
        let (owner, thread) = (tenant.clone(), name.clone());
        let deleting = self.transact("delete thread", move |mut connection| {
            Box::pin(async move {
                let statement = "delete from threads where tenant = $1 and name = $2";
                let delete = Statement::with("delete thread", statement, values![&owner, &thread]);
                if connection.execute(delete).await? == 0 {
                    return Ok(Ended::RolledBack(ThreadDelete::Absent));
                }
                Ok(match active_run(&mut connection, &owner, &thread).await? {
                    Some(active) => Ended::RolledBack(ThreadDelete::Busy(active)),
                    None => Ended::Committed(ThreadDelete::Deleted),
                })
            })
        });
        deleting.await
    }
}

const PUT: &str = "put thread";

fn put_statement<'v, E: Engine>(
    tenant: &'v TenantId,
    name: &'v ThreadName,
    session_id: SessionId,
    expected: ThreadExpectation,
    now: Timestamp,
) -> Statement<'v> {
    let text = match expected {
        ThreadExpectation::Anything | ThreadExpectation::Absent => INSERT,
        ThreadExpectation::At(_) => UPDATE,
    };
    let mut put = Statement::with(PUT, text, values![tenant, name, session_id, now]);
    put.push("exists (select 1 from sessions where tenant = $1 and session_id = $3");
    put.push(E::SHARE);
    put.push(")");
    match expected {
        ThreadExpectation::Anything => put.push(
            " on conflict (tenant, name) do update set session_id = excluded.session_id, \
                version = threads.version + 1, updated_at = excluded.updated_at",
        ),
        ThreadExpectation::Absent => put.push(" on conflict (tenant, name) do nothing"),
        ThreadExpectation::At(from) => put.push_bind(" and session_id is not distinct from ", from),
    }
    put.push(RETURNING);
    put
}

/// Finds the run that moves the thread next: the active run, or else the first waiting run.
async fn active_run(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    name: &ThreadName,
) -> Result<Option<RunId>, sqlx::Error> {
    let statement = "select run_id from run_queue where tenant = $1 and thread = $2 and moves_thread
        order by is_held, run_id
        limit 1";
    let select = Statement::with("find active run", statement, values![tenant, name]);
    let row: Option<(Uuid,)> = connection.fetch_optional(select).await?;
    Ok(row.map(|(run_id,)| RunId::from_uuid(run_id)))
}

/// Creates a thread.
const INSERT: &str = "insert into threads (tenant, name, session_id, version, created_at, updated_at)
    select $1, $2, $3, 1, $4, $4 where ";

/// Moves a thread.
const UPDATE: &str = "update threads set session_id = $3, version = version + 1, updated_at = $4
    where tenant = $1 and name = $2 and ";

const RETURNING: &str = " returning name, session_id, version, created_at, updated_at";
