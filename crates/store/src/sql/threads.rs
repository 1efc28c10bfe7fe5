//! Threads.
//!
//! A caller moves or deletes a thread first, and then looks for active runs, in one transaction.
//! The row of the thread is locked by then. So a run is either seen here, or it is accepted later
//! and finds the thread as it is then.

use async_trait::async_trait;
use uuid::Uuid;

use super::connection::{Connection, Ended};
use super::engine::Engine;
use super::queue::{key_claim_statement, key_lookup};
use super::statement::Statement;
use crate::driver_error::nothing_matches;
use crate::error::StoreError;
use crate::queue::IdempotencyKey;
use crate::rows::{RowName, ThreadRow, values};
use crate::sessions::SessionReader as _;
use crate::threads::{
    MetadataChange, ThreadCreate, ThreadDelete, ThreadDraft, ThreadExpectation, ThreadFilter, ThreadPage, ThreadPatch,
    ThreadPatched, ThreadPut, ThreadStart, ThreadStore,
};
use agent::record::{ThreadName, ThreadRecord};
use values::clock::Timestamp;
use values::ids::{RunId, SessionId};
use values::json::Object;
use values::session::{Setting, check_metadata};
use values::tenant::TenantId;

#[async_trait]
impl<E: Engine> ThreadStore for E {
    async fn thread_create(
        &self,
        tenant: &TenantId,
        draft: &ThreadDraft,
        claim: Option<(&IdempotencyKey, Uuid)>,
    ) -> Result<ThreadCreate, StoreError> {
        let (owner, draft) = (tenant.clone(), draft.clone());
        let (name, session_id) = (draft.name.clone(), draft.session_id);
        let claimed = claim.map(|(key, resource_id)| (key.clone(), resource_id));
        let creating = self.transact(CREATE, move |mut connection| {
            Box::pin(async move {
                if let Some((key, resource_id)) = &claimed {
                    let claim = key_claim_statement(&owner, key, *resource_id);
                    if connection.execute(claim).await? == 0 {
                        return Ok(Ended::RolledBack(None));
                    }
                }
                let ThreadDraft {
                    name: thread,
                    details,
                    session_id,
                    created_at,
                } = draft;
                let metadata = changed_metadata(details.metadata, None);
                let metadata = serde_json::Value::Object(metadata).to_string();
                let values = values![
                    &owner,
                    &thread,
                    session_id,
                    u64::from(session_id.is_some()),
                    created_at,
                    &details.title,
                    &metadata
                ];
                let mut insert = Statement::with(CREATE, INSERT, values);
                push_session_exists::<E>(&mut insert, session_id);
                insert.push(" on conflict (tenant, name) do nothing");
                if connection.execute(insert).await? == 0 {
                    return Ok(Ended::RolledBack(None));
                }
                let created = thread_on_conn(&mut connection, CREATE, &owner, &thread).await?;
                Ok(Ended::Committed(Some(created)))
            })
        });
        if let Some(created) = creating.await? {
            return Ok(ThreadCreate::Created(created.try_into()?));
        }
        if let Some((key, _)) = claim
            && let Some(known) = key_lookup(self, tenant, &key.key).await?
        {
            return Ok(ThreadCreate::Known(known));
        }
        Ok(match (self.thread_lookup(tenant, &name).await?, session_id) {
            (None, Some(session_id)) => ThreadCreate::NoSession(session_id),
            // A thread that was deleted since then existed at the time.
            _ => ThreadCreate::Exists,
        })
    }

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
                if connection.execute(put).await? == 0 {
                    return Ok(Ended::RolledBack(Ok(None)));
                }
                if let Some(active) = active_run(&mut connection, &owner, &thread).await? {
                    return Ok(Ended::RolledBack(Err(active)));
                }
                let row = thread_on_conn(&mut connection, PUT, &owner, &thread).await?;
                Ok(Ended::Committed(Ok(Some(row))))
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
        let select = select_statement("look up thread", tenant, Some(name));
        select.find::<ThreadRow, _>(self).await
    }

    async fn thread_patch(
        &self,
        tenant: &TenantId,
        name: &ThreadName,
        patch: &ThreadPatch,
        now: Timestamp,
    ) -> Result<ThreadPatched, StoreError> {
        let (owner, thread, patch) = (tenant.clone(), name.clone(), patch.clone());
        let patching = self.transact(PATCH, move |connection| {
            Box::pin(patch_in_txn::<E>(connection, owner, thread, patch, now))
        });
        patching.await?
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

    async fn thread_list(
        &self,
        tenant: &TenantId,
        filter: &ThreadFilter,
        page: &ThreadPage,
    ) -> Result<Vec<ThreadRecord>, StoreError> {
        let wanted = serde_json::Value::Object(filter.metadata.clone()).to_string();
        let mut select = select_statement("list threads", tenant, None);
        if let Some(agent) = &filter.agent {
            select.push(" and exists (select 1 from sessions s where s.tenant = $1 and s.session_id = t.session_id");
            select.push_bind(" and s.agent = ", agent);
            select.push(")");
        }
        if !filter.metadata.is_empty() {
            E::push_metadata_filter(&mut select, &wanted);
        }
        select.push_some(" and t.created_at >= ", filter.created.from);
        select.push_some(" and t.created_at < ", filter.created.until);
        select.push_some(" and t.updated_at >= ", filter.updated.from);
        select.push_some(" and t.updated_at < ", filter.updated.until);
        select.push_some(" and t.name > ", page.after.as_ref());
        select.push_bind(" order by t.name limit ", page.limit);
        select.list::<ThreadRow, _>(self).await.or_else(nothing_matches)
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

const CREATE: &str = "create thread";
const PUT: &str = "put thread";
const PATCH: &str = "change thread";

/// Creates a thread. The condition that the session exists follows.
const INSERT: &str = "insert into threads
        (tenant, name, session_id, version, created_at, updated_at, title, metadata)
    select $1, $2, $3, $4, $5, $5, $6, $7 where ";

/// Moves a thread. The condition that the session exists follows.
const UPDATE: &str = "update threads set session_id = $3, version = version + 1, updated_at = $4
    where tenant = $1 and name = $2 and ";

fn put_statement<'v, E: Engine>(
    tenant: &'v TenantId,
    name: &'v ThreadName,
    session_id: SessionId,
    expected: ThreadExpectation,
    now: Timestamp,
) -> Statement<'v> {
    let mut put = match expected {
        ThreadExpectation::Anything | ThreadExpectation::Absent => {
            let title: Option<&str> = None;
            let values = values![tenant, name, session_id, 1_u64, now, title, "{}"];
            Statement::with(PUT, INSERT, values)
        }
        ThreadExpectation::At(_) => Statement::with(PUT, UPDATE, values![tenant, name, session_id, now]),
    };
    push_session_exists::<E>(&mut put, Some(session_id));
    match expected {
        ThreadExpectation::Anything => put.push(
            " on conflict (tenant, name) do update set session_id = excluded.session_id, \
                version = threads.version + 1, updated_at = excluded.updated_at",
        ),
        ThreadExpectation::Absent => put.push(" on conflict (tenant, name) do nothing"),
        ThreadExpectation::At(from) => put.push_bind(" and session_id is not distinct from ", from),
    }
    put
}

/// Adds the condition that the session `$3` exists, if there is one. Locks its row in share mode,
/// so that no removal deletes it before the transaction has ended.
fn push_session_exists<E: Engine>(statement: &mut Statement<'_>, session_id: Option<SessionId>) {
    if session_id.is_none() {
        // SQLite needs a condition between `select` and `on conflict`.
        statement.push("true");
        return;
    }
    statement.push("exists (select 1 from sessions where tenant = $1 and session_id = $3");
    statement.push(E::SHARE);
    statement.push(")");
}

/// Selects a thread of a tenant, or all of them. Conditions may follow.
fn select_statement<'v>(operation: &'static str, tenant: &'v TenantId, name: Option<&'v ThreadName>) -> Statement<'v> {
    let statement = "select t.name, t.title, t.metadata, t.session_id, t.run_count, t.version, t.created_at,
            t.updated_at,
            (select s.agent from sessions s where s.tenant = t.tenant and s.session_id = t.session_id) as agent,
            (select s.message_count from sessions s where s.tenant = t.tenant and s.session_id = t.session_id)
                as message_count
        from threads t where t.tenant = $1";
    let mut select = Statement::with(operation, statement, values![tenant]);
    select.push_some(" and t.name = ", name);
    select
}

/// Reads a thread that exists.
async fn thread_on_conn(
    connection: &mut Connection<'_>,
    operation: &'static str,
    tenant: &TenantId,
    name: &ThreadName,
) -> Result<ThreadRow, sqlx::Error> {
    let select = select_statement(operation, tenant, Some(name));
    let row = connection.fetch_optional(select).await?;
    row.ok_or(sqlx::Error::RowNotFound)
}

/// Changes a thread whose row is locked, so that changes at the same time are made one after the
/// other.
async fn patch_in_txn<E: Engine>(
    mut connection: Connection<'_>,
    tenant: TenantId,
    name: ThreadName,
    patch: ThreadPatch,
    now: Timestamp,
) -> Result<Ended<Result<ThreadPatched, StoreError>>, sqlx::Error> {
    let statement = "select title, metadata from threads where tenant = $1 and name = $2";
    let mut select = Statement::with(PATCH, statement, values![&tenant, &name]);
    select.push(E::LOCK);
    let Some((title, metadata)) = connection.fetch_optional::<(Option<String>, String)>(select).await? else {
        return Ok(Ended::RolledBack(Ok(ThreadPatched::Absent)));
    };
    let metadata = match RowName::new("threads", &name).json("metadata", &metadata) {
        Ok(metadata) => changed_metadata(metadata, patch.metadata),
        Err(error) => return Ok(Ended::RolledBack(Err(error))),
    };
    if let Err(rule) = check_metadata(&metadata) {
        return Ok(Ended::RolledBack(Ok(ThreadPatched::TooLarge(rule))));
    }
    let title = match patch.title {
        Setting::Kept => title,
        Setting::Cleared => None,
        Setting::Set(title) => Some(title),
    };
    let metadata = serde_json::Value::Object(metadata).to_string();
    let statement = "update threads set title = $3, metadata = $4, updated_at = $5 where tenant = $1 and name = $2";
    let values = values![&tenant, &name, &title, &metadata, now];
    connection.execute(Statement::with(PATCH, statement, values)).await?;
    let changed = thread_on_conn(&mut connection, PATCH, &tenant, &name).await?;
    Ok(match ThreadRecord::try_from(changed) {
        Ok(thread) => Ended::Committed(Ok(ThreadPatched::Changed(thread))),
        Err(error) => Ended::RolledBack(Err(error)),
    })
}

/// Returns the metadata after a change. Null removes a pair.
fn changed_metadata(mut metadata: Object, change: Option<MetadataChange>) -> Object {
    match change {
        None => (),
        Some(MetadataChange::Merge(pairs)) => metadata.extend(pairs),
        Some(MetadataChange::Replace(pairs)) => metadata = pairs,
    }
    metadata.retain(|_, value| !value.is_null());
    metadata
}

/// Finds the run that moves the thread next: the one in progress, or else the first that waits.
pub(super) async fn active_run(
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
