//! Definitions of agents.

use super::engine::Engine;
use super::new_version::{NewVersion, VERSION_INSERT};
use super::statement::Statement;
use crate::agent::AgentDefinition;
use crate::clock::Timestamp;
use crate::json::count_reaching;
use crate::session::Hash;
use crate::store::driver_error::nothing_matches;
use crate::store::error::{StoreError, StoreFuture};
use crate::store::query::AgentPage;
use crate::store::rows::{AgentRow, PayloadSizeRow};
use crate::store::traits::{AgentList, AgentRecord, AgentStore};
use crate::tenant::TenantId;

impl<E: Engine> AgentStore for E {
    fn agent_put<'a>(
        &'a self,
        tenant: &'a TenantId,
        definition: &'a AgentDefinition,
        now: Timestamp,
    ) -> StoreFuture<'a, AgentRecord> {
        Box::pin(agent_put(self, tenant, definition, now))
    }

    fn agent_version_put<'a>(&'a self, tenant: &'a TenantId, agent: &'a AgentRecord) -> StoreFuture<'a, ()> {
        Box::pin(agent_version_put(self, tenant, agent))
    }

    fn agent_lookup<'a>(&'a self, tenant: &'a TenantId, name: &'a str) -> StoreFuture<'a, Option<AgentRecord>> {
        Box::pin(agent_lookup(self, tenant, name))
    }

    fn agent_version_lookup<'a>(&'a self, tenant: &'a TenantId, version: Hash) -> StoreFuture<'a, Option<AgentRecord>> {
        Box::pin(agent_version_lookup(self, tenant, version))
    }

    fn agent_list<'a>(&'a self, tenant: &'a TenantId, page: &'a AgentPage) -> StoreFuture<'a, AgentList> {
        Box::pin(agent_list(self, tenant, page))
    }

    fn agent_delete<'a>(&'a self, tenant: &'a TenantId, name: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(agent_delete(self, tenant, name))
    }
}

async fn agent_put(
    engine: &impl Engine,
    tenant: &TenantId,
    definition: &AgentDefinition,
    now: Timestamp,
) -> Result<AgentRecord, StoreError> {
    const OPERATION: &str = "put agent";
    let new = NewVersion::new(OPERATION, tenant, definition, now)?;
    engine.current_version_insert(&new).await?;
    // An equal version that was stored earlier has its own time.
    agent_version_lookup(engine, tenant, new.version)
        .await?
        .ok_or(StoreError::Failed {
            operation: OPERATION,
            source: "the version was deleted at once".into(),
        })
}

async fn agent_version_put(engine: &impl Engine, tenant: &TenantId, agent: &AgentRecord) -> Result<(), StoreError> {
    let new = NewVersion::new("put agent version", tenant, &agent.definition, agent.created_at)?;
    new.bind_to(VERSION_INSERT).execute(engine).await?;
    Ok(())
}

async fn agent_lookup(engine: &impl Engine, tenant: &TenantId, name: &str) -> Result<Option<AgentRecord>, StoreError> {
    let statement = "select v.version, v.created_at, v.schema_version, v.encoding, v.payload
        from agents a join agent_versions v on v.tenant = a.tenant and v.version = a.version
        where a.tenant = $1 and a.name = $2";
    let row: Option<AgentRow> = Statement::new("look up agent", statement)
        .bind(tenant.as_str())
        .bind(name)
        .fetch_optional(engine)
        .await
        .or_else(nothing_matches)?;
    row.map(AgentRecord::try_from).transpose()
}

async fn agent_version_lookup(
    engine: &impl Engine,
    tenant: &TenantId,
    version: Hash,
) -> Result<Option<AgentRecord>, StoreError> {
    let statement = "select version, created_at, schema_version, encoding, payload from agent_versions
        where tenant = $1 and version = $2";
    let row: Option<AgentRow> = Statement::new("look up agent version", statement)
        .bind(tenant.as_str())
        .bind(version.as_bytes().as_slice())
        .fetch_optional(engine)
        .await?;
    row.map(AgentRecord::try_from).transpose()
}

async fn agent_list(engine: &impl Engine, tenant: &TenantId, page: &AgentPage) -> Result<AgentList, StoreError> {
    let sizes = "select v.encoding, cast(length(v.payload) as bigint) as stored_bytes,
            substr(v.payload, 1, 18) as beginning
        from agents a join agent_versions v on v.tenant = a.tenant and v.version = a.version
        where a.tenant = $1 and ($2 is null or a.name > $2)
        order by a.name
        limit $3";
    let sizes: Vec<PayloadSizeRow> = Statement::new("measure agents", sizes)
        .bind(tenant.as_str())
        .bind(page.after.as_deref())
        .bind(i64::from(page.limit) + 1)
        .fetch_all(engine)
        .await
        .or_else(nothing_matches)?;
    let in_limit = sizes.iter().take(page.limit as usize);
    let bytes = in_limit.map(|size| usize::try_from(size.bytes()).unwrap_or(usize::MAX));
    let fitting = count_reaching(page.bytes, bytes);
    let statement = "select v.version, v.created_at, v.schema_version, v.encoding, v.payload
        from agents a join agent_versions v on v.tenant = a.tenant and v.version = a.version
        where a.tenant = $1 and ($2 is null or a.name > $2)
        order by a.name
        limit $3";
    let rows: Vec<AgentRow> = Statement::new("list agents", statement)
        .bind(tenant.as_str())
        .bind(page.after.as_deref())
        .bind(i64::try_from(fitting).unwrap_or(i64::MAX))
        .fetch_all(engine)
        .await
        .or_else(nothing_matches)?;
    let agents: Result<_, _> = rows.into_iter().map(AgentRecord::try_from).collect();
    Ok(AgentList {
        agents: agents?,
        is_last: fitting == sizes.len(),
    })
}

async fn agent_delete(engine: &impl Engine, tenant: &TenantId, name: &str) -> Result<bool, StoreError> {
    let deleted = Statement::new("delete agent", "delete from agents where tenant = $1 and name = $2")
        .bind(tenant.as_str())
        .bind(name)
        .execute(engine)
        .await
        .or_else(nothing_matches)?;
    Ok(deleted > 0)
}
