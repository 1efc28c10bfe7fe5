//! Removes all rows of a tenant, table by table. Starts with the rows that allow new work, such as
//! API keys.

use crate::audit::{Act, AuditAction, Requester};
use crate::error::StoreError;
use crate::rows::values;
use crate::sql::{Engine, RemovalAct, Statement};
use values::tenant::TenantId;

const OPERATION: &str = "remove tenant";

/// Deletes up to `$2` rows of the tenant `$1` by their key.
macro_rules! delete {
    ($table:literal, $key:literal) => {
        concat!(
            "delete from ",
            $table,
            " where (",
            $key,
            ") in (select ",
            $key,
            " from ",
            $table,
            " where tenant = $1 limit $2) returning cast(1 as bigint), cast(0 as bigint)"
        )
    };
}

const TABLES: [&str; 24] = [
    delete!("api_keys", "key_id"),
    delete!("console_sessions", "secret_hash"),
    delete!("run_queue", "tenant, run_id"),
    delete!("limited_tenants", "tenant"),
    delete!("environment_commands", "tenant, command_id"),
    delete!("idempotency_keys", "tenant, key"),
    delete!("threads", "tenant, name"),
    delete!("agents", "tenant, name"),
    delete!("agent_versions", "tenant, version"),
    delete!("webhook_deliveries", "tenant, delivery_id"),
    delete!("spend_reservations", "tenant, run_id, scope, period"),
    delete!("spend_periods", "tenant, scope, period"),
    delete!("run_journal", "tenant, run_id, sequence"),
    delete!("run_messages", "tenant, run_id, message_key"),
    delete!("run_events", "tenant, run_id, first_sequence"),
    delete!("runs", "tenant, run_id"),
    delete!("sessions", "tenant, session_id"),
    delete!("removed_sessions", "tenant, session_id"),
    delete!("unused_states", "tenant, hash"),
    delete!("history_segments", "tenant, branch_id, position"),
    delete!("history_branches", "tenant, branch_id"),
    delete!("states", "tenant, hash"),
    delete!("contents", "tenant, hash"),
    delete!("content_sweeps", "tenant"),
];

/// Removes some rows of each table. The first transaction that removes any records the act.
pub(super) async fn tenant_remove(
    engine: &impl Engine,
    tenant: &TenantId,
    limit: u32,
    by: Option<&Requester>,
) -> Result<u64, StoreError> {
    let mut act = by.map(|by| RemovalAct {
        act: Act::of(tenant, by, AuditAction::TenantRemoved, tenant.as_str()),
        statement: 0,
    });
    let mut removed = 0;
    for text in TABLES {
        let delete = Statement::with(OPERATION, text, values![tenant, limit]);
        for tally in engine.remove(vec![delete], act.clone()).await? {
            removed += u64::try_from(tally.count).unwrap_or(0);
        }
        act = act.filter(|_| removed == 0);
    }
    Ok(removed)
}
