//! Statements on PostgreSQL read only the rows that they need, also of large tables.
//!
//! The server does not analyze the tables of tests by itself. It would plan statements again in the
//! middle of a test, which then have other plans than the test is about.

use std::sync::Arc;

use agent::record::RunStatus;
use chrono::TimeDelta;
use store::outbox::DueFilter;
use store::queue::LeaseTerms;
use store::runs::{Answerer, RunFilter, WaitingFilter};
use store::sessions::SessionFilter;
use store::{Page, Store, StoreSettings, open};
use test_support::databases::TestDatabase;
use test_support::drafts::{now, tenant};
use test_support::wait::until;
use values::tenant::TenantId;

use crate::fixtures::{Fixture, postgres};
use crate::sql::queue::fixtures::{all, commit_of, events, journal, queued_run, terms, thread_name, worker};

/// Closes the store of the fixture, lets the server analyze its tables and counts the rows that it
/// reads of some of them, named in SQL, for work on a store of one connection.
pub(crate) async fn rows_read(fixture: &Fixture, tables: &str, work: impl AsyncFnOnce(&Arc<dyn Store>)) -> i64 {
    rows_read_by(fixture, 1, tables, work).await
}

/// The same on a store of so many connections, each of which has the server plan anew.
pub(crate) async fn rows_read_by(
    fixture: &Fixture,
    max_connections: u32,
    tables: &str,
    work: impl AsyncFnOnce(&Arc<dyn Store>),
) -> i64 {
    growth_by(fixture, max_connections, &reads_of(tables), work).await
}

/// Returns by how much a number grows, which the server counts.
async fn growth_by(
    fixture: &Fixture,
    max_connections: u32,
    number: &str,
    work: impl AsyncFnOnce(&Arc<dyn Store>),
) -> i64 {
    let database = &fixture.database;
    database.execute("analyze").await.unwrap();
    let before = counted(fixture, &fixture.store, number).await;
    let settings = StoreSettings {
        max_connections,
        ..TestDatabase::settings()
    };
    let store = open(database.url(), settings).await.unwrap();
    work(&store).await;
    counted(fixture, &store, number).await - before
}

/// Closes the store and returns how many rows of the tables have been read by now.
async fn counted_reads(fixture: &Fixture, store: &Arc<dyn Store>, tables: &str) -> i64 {
    counted(fixture, store, &reads_of(tables)).await
}

/// Closes the store and returns a number that the server has counted by now.
async fn counted(fixture: &Fixture, store: &Arc<dyn Store>, number: &str) -> i64 {
    store.close().await;
    until_counted(fixture, "true").await;
    fixture.database.number(number).await
}

/// Selects how many rows of the tables have been read.
fn reads_of(tables: &str) -> String {
    format!(
        "select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint from pg_stat_user_tables
        where relname in ({tables})"
    )
}

/// Waits until the other connections of a condition have ended: the server adds what a connection
/// has read when it ends.
async fn until_counted(fixture: &Fixture, condition: &str) {
    let open = format!(
        "select count(*) from pg_stat_activity where datname = current_database()
        and backend_type = 'client backend' and pid <> pg_backend_pid() and {condition}"
    );
    until("connections have ended", async || {
        fixture.database.number(&open).await == 0
    })
    .await;
}

/// Puts copies of the only run in the queue beside it, of three tenants that take turns.
const MANY_WAITING: &str = "with added as (
        insert into runs
        select copy.* from generate_series(1, 30000) number, runs one,
            lateral jsonb_populate_record(one, jsonb_build_object(
                'tenant', 'tenant' || number % 3, 'run_id', md5('run' || number), 'session_id', md5('session' || number))) copy
        returning tenant, run_id)
    insert into run_queue
    select copy.* from added, run_queue one,
        lateral jsonb_populate_record(one, jsonb_build_object(
            'tenant', added.tenant, 'run_id', added.run_id, 'turn', hashtext(added.run_id::text))) copy";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_does_not_read_the_queue() {
    let Some(fixture) = postgres().await else { return };
    fixture.enqueue(&queued_run(&fixture.tenant)).await;
    fixture.execute(MANY_WAITING).await;
    assert_eq!(fixture.count("run_queue").await, 30_001);
    // More often than a server plans a statement anew for its values.
    let read = rows_read(&fixture, "'runs', 'run_queue'", async |store| {
        for _ in 0..8 {
            let leased = store.run_lease(&terms(worker(), 0, 100), all(10)).await.unwrap();
            assert_eq!(leased.len(), 10);
        }
    })
    .await;
    assert!(read < 2_000, "{read} rows of runs and the queue were read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accepting_a_run_does_not_read_a_queue_that_was_short_when_that_was_planned() {
    for looked_at in ["select 1", "vacuum analyze run_queue"] {
        let Some(fixture) = Fixture::on_one_connection().await else {
            return;
        };
        let database = &fixture.database;
        let accept_eight = async || {
            for _ in 0..8 {
                fixture.enqueue(&queued_run(&fixture.tenant)).await;
            }
        };
        accept_eight().await;
        database.execute(looked_at).await.unwrap();
        accept_eight().await;
        database.execute("delete from run_queue").await.unwrap();
        database.execute("delete from runs").await.unwrap();
        fixture.enqueue(&queued_run(&fixture.tenant)).await;
        database.execute(MANY_WAITING).await.unwrap();
        accept_eight().await;
        let read = counted_reads(&fixture, &fixture.store, "'run_queue'").await;
        assert!(read < 2_000, "{read} rows of the queue were read after {looked_at}");
    }
}

/// Puts copies of a session beside it.
const MANY_SESSIONS: &str = "insert into sessions
    select copy.* from generate_series(1, 20000) number, (select s as stored from sessions s limit 1) one,
        lateral jsonb_populate_record(one.stored, jsonb_build_object('session_id', md5('session' || number))) copy";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn statements_read_one_row_of_sessions_that_were_none_when_those_were_planned() {
    let Some(fixture) = Fixture::on_one_connection().await else {
        return;
    };
    let database = &fixture.database;
    let commit = fixture.commit(None, &["root"]);
    let run_id = commit.run.as_ref().unwrap().record.summary.run_id;
    let mut tip = fixture.publish(&commit).await;
    // More often than a server plans a statement anew for its values.
    let look_up_eight = async || {
        for _ in 0..8 {
            let found = fixture.run(run_id).await;
            assert_eq!(found.unwrap().summary.run_id, run_id);
        }
    };
    look_up_eight().await;
    for turn in 2..=100 {
        // The tables are checked after the 32nd batch, which still reads them all.
        if turn == 32 {
            database.execute(MANY_SESSIONS).await.unwrap();
        }
        tip = fixture.child(&tip, &["turn"]).await;
        if turn == 32 {
            until("sessions are analyzed", async || {
                let analyzed = "select count(last_analyze) from pg_stat_user_tables where relname = 'sessions'";
                database.number(analyzed).await == 1
            })
            .await;
        }
    }
    look_up_eight().await;
    assert_eq!(fixture.count("sessions").await, 100 + 20_000);
    let read = counted_reads(&fixture, &fixture.store, "'sessions'").await;
    assert!((20_000..50_000).contains(&read), "{read} rows of sessions were read");
}

/// The tables that the end of a queued run touches.
const OF_ENDS: &str = "'run_queue', 'runs', 'run_journal', 'run_messages', 'sessions', 'states', 'history_segments'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_run_does_not_read_tables_that_were_small_when_that_was_planned() {
    let Some(fixture) = Fixture::on_one_connection().await else {
        return;
    };
    let database = &fixture.database;
    let root = fixture.root(&["root"]).await;
    let end_eight = async || {
        for turn in 0..8 {
            let run = queued_run(&fixture.tenant);
            fixture.enqueue(&run).await;
            let terms = terms(worker(), 0, 100);
            let leased = fixture
                .store
                .run_lease_now(&terms, &fixture.tenant, run.summary.run_id)
                .await;
            let leased = leased.unwrap().unwrap();
            let entries = journal(1, 2);
            let appended = fixture.store.progress_append(&leased.lease, &entries, &[]).await;
            assert!(appended.unwrap());
            let mut commit = commit_of(&fixture, &leased);
            if let Some(end) = &mut commit.run {
                end.events = events(leased.lease.run_id, 1, 3);
            }
            fixture.publish(&commit).await;
            fixture.child(&root, &[&turn.to_string()]).await;
        }
    };
    end_eight().await;
    fixture.enqueue(&queued_run(&fixture.tenant)).await;
    database
        .execute("delete from runs where status <> 'queued'")
        .await
        .unwrap();
    database.execute(MANY_WAITING).await.unwrap();
    until_counted(&fixture, "application_name <> 'agent-runtime'").await;
    let before = "select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0)), 0)::bigint
        from pg_stat_user_tables where relname in ('run_queue', 'runs')";
    let before = database.number(before).await;
    end_eight().await;
    let read = counted_reads(&fixture, &fixture.store, OF_ENDS).await - before;
    assert!(read < 4_000, "{read} rows were read");
    assert_eq!(fixture.count("run_queue").await, 30_001);
}

/// Puts copies of the only session and its run beside them, all on the run's thread.
const MANY_ON_THREAD: &str = "with added as (
        insert into runs
        select copy.* from generate_series(1, 4000) number, runs one,
            lateral jsonb_populate_record(one, jsonb_build_object(
                'run_id', md5('run' || number), 'session_id', md5('session' || number))) copy
        returning session_id)
    insert into sessions
    select copy.* from added, sessions one,
        lateral jsonb_populate_record(one, jsonb_build_object(
            'session_id', added.session_id, 'branch_id', added.session_id)) copy";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_the_sessions_of_a_thread_reads_each_at_most_once() {
    let Some(fixture) = postgres().await else { return };
    let mut commit = fixture.commit(None, &["root"]);
    if let Some(run) = &mut commit.run {
        run.record.summary.thread = Some(thread_name("long"));
    }
    fixture.publish(&commit).await;
    fixture.execute(MANY_ON_THREAD).await;
    assert_eq!(fixture.count("sessions").await, 4_001);
    let filter = SessionFilter {
        thread: Some(thread_name("long")),
        ..SessionFilter::default()
    };
    let page = Page {
        before: None,
        limit: 100,
    };
    let read = rows_read(&fixture, "'runs', 'sessions'", async |store| {
        let listed = store.session_list(&fixture.tenant, &filter, page).await.unwrap();
        assert_eq!(listed.len(), 100);
    })
    .await;
    assert!(read < 5_000, "{read} rows of runs and sessions were read");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_trees_and_of_a_large_one_read_parts_of_it() {
    let Some(fixture) = postgres().await else { return };
    let root = fixture.root(&["root"]).await.head.session_id;
    fixture.execute(MANY_ON_THREAD).await;
    // As autovacuum does: the server need not look at the rows of most entries of an index.
    fixture.execute("vacuum sessions").await;
    // It does at those of the newest sessions. So it expects that a lookup costs twice as much.
    let single = fixture.root(&["single"]).await.head.session_id;
    let page = |limit| Page { before: None, limit };
    let entries = "select sum(idx_tup_read)::bigint from pg_stat_user_indexes where relname in ('sessions', 'threads')";
    let read = growth_by(&fixture, 1, entries, async |store| {
        let trees = store.tree_list(&fixture.tenant, page(50)).await.unwrap();
        let counts: Vec<_> = trees
            .iter()
            .map(|tree| (tree.oldest.session_id, tree.figures.session_count))
            .collect();
        assert_eq!(counts, [(single, 1), (root, 1_000)]);
    })
    .await;
    // The newest 1,000, once for all figures.
    assert!((1_000..1_100).contains(&read), "{read} entries of indexes were read");
    let filter = SessionFilter {
        root: Some(root),
        ..SessionFilter::default()
    };
    let read = rows_read(&fixture, "'sessions'", async |store| {
        let listed = store.session_list(&fixture.tenant, &filter, page(100)).await.unwrap();
        assert_eq!(listed.len(), 100);
    })
    .await;
    assert!(read < 300, "{read} rows of sessions were read");
}

/// Puts copies of the only run beside it: of 20,000, 20 have failed, and 460 wait. The calls of 420
/// of these have expired.
pub(crate) const MANY_ENDED: &str = "insert into runs
    select copy.* from generate_series(1, 20000) number, runs one,
        lateral jsonb_populate_record(one, jsonb_build_object(
            'run_id', md5('run' || number), 'session_id', md5('session' || number),
            'status', case when number % 1000 = 0 then 'failed' when number % 500 < 12 then 'waiting' else 'completed' end,
            'person_until', case when number % 500 = 1 then '2100-01-01' when number % 500 < 12 then '2000-01-01' end)) copy";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_of_few_runs_among_many_read_those_only() {
    let Some(fixture) = postgres().await else { return };
    fixture.root(&["root"]).await;
    fixture.execute(MANY_ENDED).await;
    let failed = RunFilter {
        statuses: vec![RunStatus::Queued, RunStatus::Failed, RunStatus::Cancelled],
        ..RunFilter::default()
    };
    let waiting = WaitingFilter {
        answerer: Answerer::Person,
        now: now(),
        agent: None,
        thread: None,
    };
    let (tenant_id, page) = (
        &fixture.tenant,
        Page {
            before: None,
            limit: 10,
        },
    );
    let read = rows_read(&fixture, "'runs'", async |store| {
        // More often than a server plans a statement anew for its values.
        for _ in 0..8 {
            let listed = store.run_list(tenant_id, &failed, page).await.unwrap();
            assert_eq!(listed.len(), 10);
            let sizes = store.waiting_sizes(tenant_id, &waiting, page).await.unwrap();
            let run_ids: Vec<_> = sizes.iter().map(|(run_id, _)| *run_id).collect();
            let runs = store.waiting_list(tenant_id, &run_ids).await.unwrap();
            assert_eq!((sizes.len(), runs.len()), (10, 10));
            let count = store.waiting_count(tenant_id, &waiting, 1_000).await.unwrap();
            assert_eq!(count, 40);
        }
    })
    .await;
    assert!(read < 8 * 150, "{read} rows of runs were read");
}

/// Inserts messages into the outbox that are all due: 100,000 to one host, then 20,000 of one
/// tenant to another host, then some that five tenants send to four hosts.
const MANY_DUE: &str = "insert into webhook_deliveries (
        tenant, delivery_id, run_id, event, url, receiver, status, created_at, due_at, schema_version, encoding, payload)
    select
        case when n <= 120000 then 'acme' else 'tenant' || n % 5 end, gen_random_uuid(), gen_random_uuid(), 'run.completed',
        'https://example.org/', case when n <= 100000 then 'busy.example' when n <= 120000 then 'other.example'
            else 'host' || n % 4 end,
        'pending', now() - interval '1 day', now() - interval '1 day' + n * interval '1 ms', 1, 0, '{}'
    from generate_series(1, 120400) n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_of_deliveries_does_not_read_those_to_busy_receivers() {
    let Some(fixture) = postgres().await else { return };
    fixture.execute(MANY_DUE).await;
    let (busy, acme) = (["busy.example".to_owned()], [tenant("acme")]);
    let read = rows_read(&fixture, "'webhook_deliveries'", async |store| {
        // More often than a server plans a statement anew for its values.
        for _ in 0..8 {
            for (except_tenants, expected) in [(&acme[..0], "acme"), (&acme, "tenant")] {
                assert_leases_four(&**store, &busy, except_tenants, expected).await;
            }
        }
    })
    .await;
    assert!(read < 16 * 1_000, "{read} rows of deliveries were read");
}

/// Leases four deliveries except to these receivers and of these tenants, and checks how the names
/// of their tenants begin.
async fn assert_leases_four(
    store: &dyn Store,
    except_receivers: &[String],
    except_tenants: &[TenantId],
    expected: &str,
) {
    let terms = LeaseTerms {
        worker: worker(),
        now: now(),
        until: now() + TimeDelta::seconds(100),
    };
    let filter = DueFilter {
        limit: 4,
        except_receivers,
        except_tenants,
    };
    let leased = store.delivery_lease(&terms, filter).await.unwrap();
    assert_eq!(leased.len(), 4);
    assert!(leased.iter().all(|due| due.tenant.as_str().starts_with(expected)));
}

/// Inserts messages into the outbox that are all due: 40,000 of a tenant to 10,000 hosts, then some
/// that five others send to four hosts.
const MANY_RECEIVERS: &str = "insert into webhook_deliveries (
        tenant, delivery_id, run_id, event, url, receiver, status, created_at, due_at, schema_version, encoding, payload)
    select
        case when n <= 40000 then 'acme' else 'tenant' || n % 5 end, gen_random_uuid(), gen_random_uuid(), 'run.completed',
        'https://example.org/', 'host' || n % case when n <= 40000 then 10000 else 4 end,
        'pending', now() - interval '1 day', now() - interval '1 day' + n * interval '1 ms', 1, 0, '{}'
    from generate_series(1, 40400) n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_of_deliveries_does_not_check_all_receivers_of_a_busy_tenant() {
    let Some(fixture) = postgres().await else { return };
    fixture.execute(MANY_RECEIVERS).await;
    let (busy, acme) = (["host1".to_owned()], [tenant("acme")]);
    let read = rows_read(&fixture, "'webhook_deliveries'", async |store| {
        for _ in 0..8 {
            assert_leases_four(&**store, &busy, &acme, "tenant").await;
        }
    })
    .await;
    assert!(read < 8 * 1_000, "{read} rows of deliveries were read");
}
