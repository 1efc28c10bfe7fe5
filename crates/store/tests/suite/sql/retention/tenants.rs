//! A removed tenant leaves no row in any table, and nothing of other tenants is removed.

use chrono::TimeDelta;
use store::commands::{CommandKey, CommandLease, CommandTerms, NewCommand, OutputPiece};
use store::keys::{ApiKeyRecord, Scope};
use store::spend::SpendRequest;
use store::threads::ThreadExpectation;
use test_support::databases::Engine;
use test_support::drafts::{now, requester, tenant};
use test_support::workspaces::file;
use values::ids::{ApiKeyId, CommandId, ExecutionId, RunId, UuidV7Source, WorkerId};

use super::rules::add_remains;
use super::{KEEP_ALL, aged, older_than};
use crate::fixtures::Fixture;
use crate::sql::commit::subagents::family;
use crate::sql::console_sessions::console_session;
use crate::sql::spend::{limits, request};

on_both_engines!(a_removed_tenant_leaves_nothing_and_others_stay);

/// Every table whose rows belong to tenants, by the database's own catalogue. The list of objects
/// to delete outlives its tenant until the next sweep; `objects.rs` tests it.
async fn tables(fixture: &Fixture) -> Vec<String> {
    let select = match fixture.database.engine {
        Engine::Postgres => {
            "select table_name from information_schema.columns
             where table_schema = 'public' and column_name = 'tenant' and table_name <> 'content_objects'
             order by 1"
        }
        Engine::Sqlite => {
            "select m.name from sqlite_master m join pragma_table_info(m.name) c
             where m.type = 'table' and c.name = 'tenant' and m.name <> 'content_objects' order by 1"
        }
    };
    fixture.database.texts(select).await
}

/// Fills every table of the fixture's tenant.
async fn fill(fixture: &Fixture) {
    let store = &fixture.store;
    let root = fixture.publish(&aged(fixture.commit(None, &["root"]), now(), 9)).await;
    let child = fixture.child(&root, &["child"]).await;
    fixture.child(&root, &["fork"]).await;
    store.session_commit(&family(fixture, Some(&child))).await.unwrap();
    fixture.sweep(older_than(5), now(), 10).await;
    let name = "main".parse().unwrap();
    let id = child.head.session_id;
    store
        .thread_put(&fixture.tenant, &name, id, ThreadExpectation::Anything, now())
        .await
        .unwrap();
    let agent = serde_json::from_str(r#"{"name": "mine", "model": "demo/demo"}"#).unwrap();
    store.agent_put(&fixture.tenant, &agent, &requester()).await.unwrap();
    let key_id = ApiKeyId::generate(&UuidV7Source);
    let key = ApiKeyRecord {
        key_id,
        secret_hash: values::session::hash_definition(key_id.as_uuid().as_bytes()),
        tenant: fixture.tenant.clone(),
        scopes: vec![Scope::Admin],
        label: String::new(),
        limits: values::limits::RunLimits::default(),
        created_at: now(),
        revoked_at: None,
    };
    store.key_insert(&key, &requester()).await.unwrap();
    let session = console_session(&key, "cookie", TimeDelta::hours(1));
    store.console_session_insert(&session, 10, &requester()).await.unwrap();
    add_remains(fixture, 1).await;
    add_command(fixture).await;
    fixture.put(&[file("a"), file("b"), file("c")]).await;
    let reservation = SpendRequest {
        tenant: fixture.tenant.clone(),
        ..request(RunId::generate(&UuidV7Source), &limits(1.0, 2.0), 0.1, 0.1)
    };
    store.spend_reserve(&reservation).await.unwrap();
    // It is empty unless a commit under way may use a state.
    let leave = "insert into unused_states (tenant, hash, is_held) select tenant, hash, false from states";
    fixture
        .execute(&format!("{leave} where tenant = '{}'", fixture.tenant))
        .await;
    // PostgreSQL has a row where waiting runs are limited.
    let limited = format!("insert into limited_tenants (tenant) values ('{}')", fixture.tenant);
    fixture.execute(&limited).await;
}

/// Adds a command at a worker, with a piece of output.
async fn add_command(fixture: &Fixture) {
    let (now, until) = (now(), now() + TimeDelta::hours(1));
    let key = CommandKey {
        tenant: fixture.tenant.clone(),
        command_id: CommandId::generate(&UuidV7Source),
    };
    let command = NewCommand {
        key: key.clone(),
        execution_id: ExecutionId::generate(&UuidV7Source),
        preferred_worker: None,
        now,
        awaited_until: until,
        request: String::new(),
    };
    fixture.store.command_insert(&command).await.unwrap();
    let worker = WorkerId::generate(&UuidV7Source);
    let terms = CommandTerms {
        worker,
        now,
        until,
        preferred_before: now,
    };
    fixture.store.command_take(&terms).await.unwrap().unwrap();
    let piece = OutputPiece {
        position: 0,
        bytes: "output".into(),
    };
    let lease = CommandLease { key, worker };
    assert!(fixture.store.command_add_output(&lease, &piece, now).await.unwrap());
}

async fn count_of(fixture: &Fixture, table: &str, tenant: &str) -> i64 {
    fixture.count(&format!("{table} where tenant = '{tenant}'")).await
}

async fn a_removed_tenant_leaves_nothing_and_others_stay(mut fixture: Fixture) {
    let tables = tables(&fixture).await;
    assert!(tables.len() >= 17, "{tables:?}");
    let mut counts = Vec::new();
    for name in ["acme", "other"] {
        fixture.tenant = tenant(name);
        fill(&fixture).await;
    }
    for table in &tables {
        let rows = count_of(&fixture, table, "other").await;
        assert!(rows > 0, "nothing of {table} is there to be removed");
        counts.push(rows);
    }
    let acme = tenant("acme");
    // In steps of two rows of each table, the last of which finds nothing.
    let mut steps = 0;
    while fixture.store.tenant_remove(&acme, 2, None).await.unwrap() > 0 {
        steps += 1;
    }
    assert!(steps > 1);
    for (table, rows) in tables.iter().zip(counts) {
        assert_eq!(count_of(&fixture, table, "acme").await, 0, "{table}");
        assert_eq!(count_of(&fixture, table, "other").await, rows, "{table}");
    }
    fixture.sweep(KEEP_ALL, now(), 10).await;
}
