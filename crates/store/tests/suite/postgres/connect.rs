//! Connections to PostgreSQL: commits that are durable with any defaults of the server, servers
//! that can't be reached, and connections that are dropped.

use agent::record::RunStatus;
use store::{StoreError, StoreSettings, Unavailability, open};
use test_support::databases::TestDatabase;
use test_support::drafts::{run_end, run_id, run_record, session_id, tenant};
use test_support::wait::until;

use crate::fixtures::{Fixture, postgres};

#[tokio::test]
async fn commits_are_durable_and_idle_transactions_end_despite_the_defaults_of_the_server() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let store = open(database.url(), TestDatabase::settings()).await.unwrap();
    store.close().await;
    database
        .execute(
            "do $$ begin execute format('alter database %I set synchronous_commit = off', current_database()); end $$;
            create table witnessed (setting text, idle text, jit text);
            create function witness() returns trigger language plpgsql as $$
            begin
                insert into witnessed values (
                    current_setting('synchronous_commit'), current_setting('idle_in_transaction_session_timeout'),
                    current_setting('jit'));
                return new;
            end $$;
            create trigger witness after insert on sessions for each row execute function witness()",
        )
        .await
        .unwrap();
    let store = open(database.url(), TestDatabase::settings()).await.unwrap();
    let fixture = Fixture {
        store,
        tenant: tenant("acme"),
        database,
    };
    fixture.root(&["root"]).await;
    let durable = "select count(*) from witnessed where setting = 'on' and idle = '10s' and jit = 'off'";
    assert_eq!(fixture.database.number(durable).await, 1);
}

#[tokio::test]
async fn a_missing_database_is_named() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    let url = format!("{}_gone", database.url());
    let error = open(&url, TestDatabase::settings()).await.unwrap_err();
    assert!(error.to_string().ends_with("_gone"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_drops_its_connections_is_unavailable_and_then_back() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await;
    let commit = fixture.commit(Some(&root), &["next"]);
    let outage = fixture.database.begin_outage().await;
    for _ in 0..6 {
        let error = fixture.store.session_commit(&commit).await.unwrap_err();
        let store::CommitError::Store(error) = error else {
            panic!("{error:?}")
        };
        assert!(error.is_transient(), "{error:?}");
    }
    let failed = run_end(run_record(run_id(), session_id(), RunStatus::Failed), Vec::new());
    for _ in 0..3 {
        let error = fixture.store.run_record(&fixture.tenant, &failed).await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
        let error = fixture.store.health_check().await.unwrap_err();
        assert!(error.is_transient(), "{error:?}");
    }
    outage.end().await;
    let next = fixture.publish(&commit).await;
    assert_eq!(fixture.load(next.head.session_id).await, *next);
}

/// Lets the database take writes from now on, or not, and disconnects all clients.
async fn set_read_only(database: &TestDatabase, value: &str) {
    let set = format!(
        "begin read write;
        do $$ begin
            execute format('alter database %I set default_transaction_read_only = {value}', current_database());
        end $$;
        commit"
    );
    database.execute(&set).await.unwrap();
    let disconnect = "select pg_terminate_backend(pid, 20000) from pg_stat_activity
        where datname = current_database() and pid <> pg_backend_pid()";
    database.execute(disconnect).await.unwrap();
}

#[tokio::test]
async fn a_standby_that_was_promoted_has_to_take_writes() {
    let Some(database) = TestDatabase::postgres().await else {
        return;
    };
    set_read_only(&database, "on").await;
    let settings = StoreSettings {
        migrate: false,
        ..TestDatabase::settings()
    };
    let store = open(database.url(), settings).await.unwrap();
    store.write_check().await.unwrap();

    set_read_only(&database, "off").await;
    until("it takes no writes", async || store.write_check().await.is_ok()).await;
    set_read_only(&database, "on").await;
    until("a failed check counts as passed", async || {
        let checked = store.write_check().await;
        matches!(
            checked,
            Err(StoreError::Unavailable {
                reason: Unavailability::ReadOnly,
                ..
            })
        )
    })
    .await;
    store.close().await;
}
