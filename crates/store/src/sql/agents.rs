//! Definitions of agents.

use async_trait::async_trait;
use serde_json::json;

use super::audit::LockedChain;
use super::connection::{Connection, Ended};
use super::engine::Engine;
use super::statement::Statement;
use crate::agents::{AgentList, AgentPage, AgentRecord, AgentStore};
use crate::audit::{Act, AuditAction, Requester};
use crate::codec::encode_definition;
use crate::driver_error::nothing_matches;
use crate::error::StoreError;
use crate::rows::{AgentRow, PayloadSizeRow, Value, values};
use agent::definition::AgentDefinition;
use values::json::count_reaching;
use values::session::Hash;
use values::tenant::TenantId;

#[async_trait]
impl<E: Engine> AgentStore for E {
    async fn agent_put(
        &self,
        tenant: &TenantId,
        definition: &AgentDefinition,
        by: &Requester,
    ) -> Result<AgentRecord, StoreError> {
        const OPERATION: &str = "put agent";
        let (version, payload) = encode_definition(definition).map_err(StoreError::failed(OPERATION))?;
        let act = Act::of(tenant, by, AuditAction::AgentStored, definition.name.as_str()).with("after", json!(version));
        let now = by.at;
        let (owner, name) = (tenant.clone(), definition.name.clone());
        let put = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                let chain = LockedChain::lock(&mut connection, &act.chain).await?;
                let before = current_version(&mut connection, &owner, &name).await?;
                if before == Some(version) {
                    return Ok(Ended::RolledBack(()));
                }
                chain
                    .append(&mut connection, &act.with("before", json!(before)))
                    .await?;
                let insert = Statement::with(OPERATION, VERSION_INSERT, values![&owner, &version, &name, now]);
                connection.execute(insert.bind_payload(&payload)).await?;
                let statement = "insert into agents (tenant, name, version) values ($1, $2, $3)
                    on conflict (tenant, name) do update set version = excluded.version";
                let make_current = Statement::with(OPERATION, statement, values![&owner, &name, &version]);
                connection.execute(make_current).await?;
                Ok(Ended::Committed(()))
            })
        });
        put.await?;
        // If an equal version was stored earlier, returns it with its earlier time.
        let stored = self.agent_version_lookup(tenant, version).await?;
        stored.ok_or_else(|| StoreError::failed(OPERATION)("the version was deleted at once"))
    }

    async fn agent_version_put(&self, tenant: &TenantId, agent: &AgentRecord) -> Result<(), StoreError> {
        const OPERATION: &str = "put agent version";
        let definition = &agent.definition;
        let (version, payload) = encode_definition(definition).map_err(StoreError::failed(OPERATION))?;
        let values = values![tenant, &version, &definition.name, agent.created_at];
        let insert = Statement::with(OPERATION, VERSION_INSERT, values).bind_payload(&payload);
        insert.execute(self).await?;
        Ok(())
    }

    async fn agent_lookup(&self, tenant: &TenantId, name: &str) -> Result<Option<AgentRecord>, StoreError> {
        let statement = "select v.version, v.created_at, v.schema_version, v.encoding, v.payload
            from agents a join agent_versions v on v.tenant = a.tenant and v.version = a.version
            where a.tenant = $1 and a.name = $2";
        let select = Statement::with("look up agent", statement, values![tenant, name]);
        select.find::<AgentRow, _>(self).await.or_else(nothing_matches)
    }

    async fn agent_version_lookup(&self, tenant: &TenantId, version: Hash) -> Result<Option<AgentRecord>, StoreError> {
        let statement = "select version, created_at, schema_version, encoding, payload from agent_versions
            where tenant = $1 and version = $2";
        let select = Statement::with("look up agent version", statement, values![tenant, &version]);
        select.find::<AgentRow, _>(self).await
    }

    async fn agent_list(&self, tenant: &TenantId, page: &AgentPage<String>) -> Result<AgentList, StoreError> {
        let rows = " from agents a join agent_versions v on v.tenant = a.tenant and v.version = a.version
            where a.tenant = $1 and ($2 is null or a.name > $2)
            order by a.name";
        read_page(self, rows, values![tenant, &page.after], page).await
    }

    async fn agent_version_list(
        &self,
        tenant: &TenantId,
        name: &str,
        page: &AgentPage<Hash>,
    ) -> Result<AgentList, StoreError> {
        let rows = " from agent_versions v
            where v.tenant = $1 and v.name = $2 and ($3 is null or (v.created_at, v.version) < (
                select created_at, version from agent_versions where tenant = $1 and version = $3))
            order by v.created_at desc, v.version desc";
        read_page(self, rows, values![tenant, name, &page.after], page).await
    }

    async fn agent_delete(&self, tenant: &TenantId, name: &str, by: &Requester) -> Result<bool, StoreError> {
        const OPERATION: &str = "delete agent";
        let act = Act::of(tenant, by, AuditAction::AgentDeleted, name);
        let (owner, name) = (tenant.clone(), name.to_owned());
        let deleting = self.transact(OPERATION, move |mut connection| {
            Box::pin(async move {
                let chain = LockedChain::lock(&mut connection, &act.chain).await?;
                let Some(before) = current_version(&mut connection, &owner, &name).await? else {
                    return Ok(Ended::RolledBack(false));
                };
                chain
                    .append(&mut connection, &act.with("before", json!(before)))
                    .await?;
                let statement = "delete from agents where tenant = $1 and name = $2";
                let delete = Statement::with(OPERATION, statement, values![&owner, &name]);
                connection.execute(delete).await?;
                Ok(Ended::Committed(true))
            })
        });
        deleting.await.or_else(nothing_matches)
    }
}

async fn current_version(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    name: &str,
) -> Result<Option<Hash>, sqlx::Error> {
    let statement = "select version from agents where tenant = $1 and name = $2";
    let select = Statement::with("look up agent", statement, values![tenant, name]);
    let row: Option<(Vec<u8>,)> = connection.fetch_optional(select).await?;
    let version = row.map(|(version,)| Hash::try_from(version.as_slice())).transpose();
    version.map_err(|error| sqlx::Error::Decode(error.into()))
}

/// Reads versions, as many as a page holds. `rows` continues the statement after its columns.
async fn read_page<E: Engine, K: Sync>(
    engine: &E,
    rows: &'static str,
    values: Vec<Value<'_>>,
    page: &AgentPage<K>,
) -> Result<AgentList, StoreError> {
    let select = |columns, limit: u64| {
        let mut select = Statement::with("list agents", columns, values.clone());
        select.push(rows);
        select.push_bind(" limit ", limit);
        select
    };
    let sizes = "select v.encoding, cast(length(v.payload) as bigint) as stored_bytes,
        substr(v.payload, 1, 18) as beginning";
    let sizes = select(sizes, u64::from(page.limit) + 1);
    let sizes: Vec<PayloadSizeRow> = sizes.fetch_all(engine).await.or_else(nothing_matches)?;
    let in_limit = sizes.iter().take(page.limit as usize);
    let bytes = in_limit.map(|size| usize::try_from(size.bytes()).unwrap_or(usize::MAX));
    let fitting = count_reaching(page.bytes, bytes);
    let columns = "select v.version, v.created_at, v.schema_version, v.encoding, v.payload";
    let select = select(columns, fitting as u64);
    Ok(AgentList {
        agents: select.list::<AgentRow, _>(engine).await.or_else(nothing_matches)?,
        is_last: fitting == sizes.len(),
    })
}

/// Inserts a version unless it is stored already. The values are the tenant, the version, the name,
/// the time and the three columns of the payload.
const VERSION_INSERT: &str = "insert into agent_versions (
        tenant, version, name, created_at, schema_version, encoding, payload)
    values ($1, $2, $3, $4, $5, $6, $7)
    on conflict do nothing";
