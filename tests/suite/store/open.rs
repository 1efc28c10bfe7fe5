//! Opening: what is missing is made, what does not fit is refused, many may start at once.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_runtime::session::ContextForm;
use agent_runtime::store::{Commit, CommitError, IfBusy, OpenError, StoreError, StoreSettings, migrate, open};
use futures_util::future::join_all;

use super::fixtures::{Fixture, user};
use crate::store::sql::queue::fixtures::{queued_run, thread_run};
use crate::support::databases::{Engine, TestDatabase};
use crate::support::logs::{CapturedLog, listen};

on_both_engines!(
    another_schema_is_refused,
    what_was_committed_is_there_after_reopening,
    a_store_of_an_earlier_version_is_migrated,
    of_several_active_runs_on_a_thread_all_but_the_first_wait,
    a_closed_store_is_unavailable
);

/// Returns the versions that the migrations make, oldest first.
fn versions_of_the_schema() -> Vec<i64> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations/postgres");
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap());
    let mut versions: Vec<i64> = names.map(|name| name[..4].parse().unwrap()).collect();
    versions.sort_unstable();
    versions
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_may_start_at_once() {
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let Some(database) = TestDatabase::empty(engine).await else {
            continue;
        };
        let opened = join_all((0..8).map(|_| open(database.url(), TestDatabase::settings()))).await;
        for store in opened {
            let store = store.unwrap();
            store.health_check().await.unwrap();
            store.close().await;
        }
        migrate(database.url()).await.unwrap();
        let versions = database.number("select count(*) from schema_migrations").await;
        assert_eq!(usize::try_from(versions).unwrap(), versions_of_the_schema().len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_removed_file_takes_no_writes() {
    let fixture = Fixture::new(Engine::Sqlite).await.unwrap();
    let path = PathBuf::from(fixture.database.url().strip_prefix("sqlite://").unwrap());
    let elsewhere = path.with_extension("away");
    let reported = async |cause: &str| {
        let health = fixture.store.health_check().await.unwrap_err();
        let commit = fixture.commit(None, &["lost"]);
        let CommitError::Store(refused) = fixture.store.session_commit(&commit).await.unwrap_err() else {
            panic!("the file is there")
        };
        for error in [health, refused] {
            assert!(error.is_transient(), "{error:?}");
            let source = error.source().unwrap().to_string();
            assert!(
                source.contains(cause) && source.contains(path.to_str().unwrap()),
                "{source}"
            );
        }
        commit.draft.session_id
    };
    let root = fixture.root(&["root"]).await;
    fs::rename(&path, &elsewhere).unwrap();
    let refused = [reported("was removed").await, {
        fs::write(&path, "").unwrap();
        reported("was replaced").await
    }];
    // Once it is back all is as before.
    fs::rename(&elsewhere, &path).unwrap();
    fixture.store.health_check().await.unwrap();
    let child = fixture.child(&root, &["child"]).await;
    let lookup = async |session_id| fixture.store.session_lookup(&fixture.tenant, session_id).await.unwrap();
    for session_id in refused {
        assert!(lookup(session_id).await.is_none());
    }
    assert!(lookup(child.head.session_id).await.is_some());
}

#[tokio::test]
async fn a_second_start_logs_nothing_about_existing_tables() {
    let Some(database) = TestDatabase::empty(Engine::Postgres).await else {
        return;
    };
    let log = CapturedLog::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
    let _listening = listen(subscriber);
    for _ in 0..2 {
        migrate(database.url()).await.unwrap();
    }
    tracing::info!("the log is read");
    let text = log.text();
    assert!(text.contains("the log is read") && text.lines().count() == 1, "{text}");
}

async fn another_schema_is_refused(fixture: Fixture) {
    let (database, unmigrated) = (
        &fixture.database,
        StoreSettings {
            migrate: false,
            ..TestDatabase::settings()
        },
    );
    database
        .execute("insert into schema_migrations (version, description) values (99, 'future')")
        .await
        .unwrap();
    let health = fixture.store.health_check().await.unwrap_err();
    let newest = versions_of_the_schema().pop().unwrap();
    assert!(
        matches!(health, StoreError::Schema { found: 99, needed } if needed == newest),
        "{health:?}"
    );
    for settings in [unmigrated.clone(), TestDatabase::settings()] {
        let error = open(database.url(), settings).await.unwrap_err();
        assert!(
            matches!(error, OpenError::Store(StoreError::Schema { found: 99, .. })),
            "{error:?}"
        );
    }
    let empty = TestDatabase::empty(database.engine).await.unwrap();
    let error = open(empty.url(), unmigrated.clone()).await.unwrap_err();
    if let Some(path) = empty.url().strip_prefix("sqlite://") {
        let path = Path::new(path);
        assert!(
            matches!(&error, OpenError::Missing { path: missing } if missing == path),
            "{error:?}"
        );
        assert!(
            !path.parent().unwrap().exists(),
            "neither the file nor its folder is made"
        );
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    let error = open(empty.url(), unmigrated).await.unwrap_err();
    assert!(
        matches!(error, OpenError::Store(StoreError::Schema { found: 0, .. })),
        "{error:?}"
    );
}

async fn what_was_committed_is_there_after_reopening(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    fixture.store.close().await;
    let store = open(fixture.database.url(), TestDatabase::settings()).await.unwrap();
    assert_eq!(
        store
            .bundle_load(&fixture.tenant, root.head.session_id)
            .await
            .unwrap()
            .unwrap(),
        *root
    );
    store.close().await;
}

/// Takes each migration but the first back, newest first.
const TAKING_BACK: &[(i64, &str)] = &[
    (18, "drop table write_checks"),
    (
        17,
        "drop index runs_by_answer; alter table runs drop column answer_run_id;
        drop index runs_without_session_by_session; drop index runs_without_session_by_base;
        create unique index runs_without_session_by_session on runs (tenant, session_id)
            where status not in ('completed', 'stopped', 'waiting');
        create index runs_without_session_by_base on runs (tenant, base_session_id, run_id)
            where status not in ('completed', 'stopped', 'waiting')",
    ),
    (
        16,
        "alter table sessions drop column agent_created_at;
        alter table sessions drop column agent_id",
    ),
    (
        15,
        "drop index runs_without_session_by_session;
        drop index runs_without_session_by_base;
        create unique index runs_by_session on runs (tenant, session_id);
        create index runs_by_base on runs (tenant, base_session_id, run_id) where base_session_id is not null;
        create index sessions_by_age on sessions (created_at);
        alter table runs drop column output_messages",
    ),
    (
        14,
        "drop table environment_command_output;
        drop table environment_commands",
    ),
    (
        13,
        "drop table content_totals;
        drop table content_objects;
        drop index contents_in_objects",
    ),
    (
        12,
        "drop table contents;
        drop table content_sweeps;
        drop index states_by_tree;
        drop index run_journal_by_tree;
        alter table states drop column tree;
        alter table run_journal drop column tree",
    ),
    (
        11,
        "drop index run_queue_active;
        drop table limited_tenants;
        drop table if exists removal_turn;
        alter table unused_states rename to removed_states",
    ),
    (
        10,
        "drop index webhook_deliveries_by_tenant;
        create index webhook_deliveries_by_receiver on webhook_deliveries (tenant)",
    ),
    (9, "drop index webhook_deliveries_by_receiver"),
    (8, "drop index runs_by_model; drop index if exists runs_by_metadata"),
    (7, "drop table removed_states"),
    (6, "alter table webhook_deliveries drop column receiver"),
    (
        5,
        "alter table runs drop column cost_known_part;
        alter table runs drop column answered_by",
    ),
    (
        4,
        "drop index run_queue_by_turn;
        drop index run_queue_of_tenant;
        drop index run_queue_by_priority;
        alter table run_queue drop column level;
        alter table api_keys drop column limits;
        create index run_queue_by_turn on run_queue (priority desc, turn, run_id)
            where leased_until is null and (not is_held or control = 'cancel');
        create index run_queue_of_tenant on run_queue (tenant, priority, turn) where leased_until is null",
    ),
    (
        3,
        "drop index runs_by_thread;
        drop index runs_without_session;
        drop index sessions_by_age;
        drop index sessions_by_environment;
        drop index sessions_by_context;
        alter table runs drop column event_count;
        alter table runs drop column attempts;
        alter table runs drop column durability;
        alter table runs drop column thread;
        alter table runs drop column thread_moved;
        drop table run_queue;
        drop table run_journal;
        drop table run_events;
        drop table run_messages;
        drop table idempotency_keys;
        drop table threads;
        drop table webhook_deliveries;
        drop table removed_sessions",
    ),
    (
        2,
        "drop index sessions_by_subagent;
        alter table sessions drop column subagent_of;
        alter table sessions drop column history_start",
    ),
];

/// Takes a migration back.
async fn take_back(fixture: &Fixture, version: i64, sql: &str) {
    if version == 13 {
        let triggers = match fixture.database.engine {
            Engine::Postgres => {
                "drop function count_new_contents, count_removed_contents, take_content_object, give_up_content_object \
                 cascade"
            }
            Engine::Sqlite => {
                "drop trigger new_contents_are_counted;
                drop trigger removed_contents_are_counted;
                drop trigger contents_take_their_objects;
                drop trigger contents_give_up_their_objects"
            }
        };
        fixture.database.execute(triggers).await.unwrap();
    }
    fixture.database.execute(sql).await.unwrap();
}

/// Opens a store with what an earlier version has committed to it.
async fn a_store_of_an_earlier_version_is_migrated(fixture: Fixture) {
    let mut fixture = fixture;
    // An earlier version stored each output with its run, as this one does if no session has it,
    // and each agent instance in its context.
    let of_earlier_version = |mut commit: Commit| {
        commit.draft.context_form = ContextForm::WithAgent;
        commit.run.as_mut().unwrap().record.output = vec![user("output")];
        commit
    };
    let root = of_earlier_version(fixture.commit(None, &["root"]));
    let root = (fixture.publish(&root).await, root);
    let child = of_earlier_version(fixture.commit(Some(&root.0), &["child"]));
    let child = (fixture.publish(&child).await, child);
    let newest = versions_of_the_schema().pop().unwrap();
    // What an older version does not know stays lost, so the newest comes first.
    for oldest in [15, 12, 11, 4, 3, 2, 1] {
        let mut waiting = queued_run(&fixture.tenant);
        waiting.priority = 100;
        fixture.enqueue(&waiting).await;
        fixture.store.close().await;
        for (version, sql) in TAKING_BACK.iter().copied() {
            if version > oldest {
                take_back(&fixture, version, sql).await;
                let forget = format!("delete from schema_migrations where version = {version}");
                fixture.database.execute(&forget).await.unwrap();
            }
        }
        let unmigrated = StoreSettings {
            migrate: false,
            ..TestDatabase::settings()
        };
        let error = open(fixture.database.url(), unmigrated).await.unwrap_err();
        assert!(
            matches!(error, OpenError::Store(StoreError::Schema { found, needed }) if found == oldest && needed == newest),
            "{error:?}"
        );
        let store = open(fixture.database.url(), TestDatabase::settings()).await.unwrap();
        fixture = Fixture { store, ..fixture };
        for (bundle, commit) in [&root, &child] {
            assert_eq!(fixture.load(bundle.head.session_id).await, **bundle);
            // What nobody counted then is unknown now.
            let mut run = commit.run.clone().unwrap().record;
            if oldest < 5 {
                run.summary.answered_by = None;
            }
            if oldest < 3 {
                run.summary.event_count = 0;
            }
            let stored = fixture.store.run_lookup(&fixture.tenant, run.summary.run_id).await;
            assert_eq!(stored.unwrap(), Some(run));
        }
        let next = fixture.child(&child.0, &["next"]).await;
        assert_eq!(fixture.load(next.head.session_id).await, *next);
        let report = fixture
            .store
            .session_verify(&fixture.tenant, next.head.session_id)
            .await;
        assert_eq!(report.unwrap().unwrap().faults, []);
        // A queue is there from version 3 on, and what waits there is not lost.
        let expected = if oldest >= 3 { 2 } else { 1 };
        fixture.enqueue_new().await;
        assert_eq!(fixture.lease(10).await.len(), expected);
    }
    fixture.store.close().await;
}

/// A version without the index may have left several runs active on one thread.
async fn of_several_active_runs_on_a_thread_all_but_the_first_wait(fixture: Fixture) {
    let mut runs = Vec::new();
    for thread in ["t", "u", "v"] {
        let run = thread_run(&fixture.tenant, thread, IfBusy::Reject);
        fixture.enqueue(&run).await;
        runs.push(run.summary.run_id);
    }
    fixture.enqueue(&thread_run(&fixture.tenant, "t", IfBusy::Fork)).await;
    fixture.store.close().await;
    for (version, sql) in TAKING_BACK.iter().filter(|(version, _)| *version >= 11) {
        take_back(&fixture, *version, sql).await;
    }
    let earlier = "delete from schema_migrations where version >= 11; update run_queue set thread = 't'";
    fixture.database.execute(earlier).await.unwrap();
    let store = open(fixture.database.url(), TestDatabase::settings()).await.unwrap();
    let fixture = Fixture { store, ..fixture };
    assert_eq!(fixture.count("run_queue where is_held").await, 2);
    let leased = fixture.lease(10).await;
    let ids: Vec<_> = leased.iter().map(|run| run.lease.run_id).collect();
    assert!(
        ids.len() == 2 && ids.contains(&runs[0]),
        "the first and the fork: {ids:?}"
    );
    fixture.store.close().await;
}

async fn a_closed_store_is_unavailable(fixture: Fixture) {
    let commit = fixture.commit(None, &["root"]);
    fixture.store.close().await;
    let error = fixture.store.session_commit(&commit).await.unwrap_err();
    assert!(
        matches!(
            error,
            agent_runtime::store::CommitError::Store(StoreError::Unavailable { .. })
        ),
        "{error:?}"
    );
    let error = fixture
        .store
        .bundle_load(&fixture.tenant, commit.draft.session_id)
        .await
        .unwrap_err();
    assert!(error.is_transient());
}

#[tokio::test]
async fn addresses_that_name_no_store_are_refused() {
    let settings = TestDatabase::settings();
    for url in ["", "mysql://localhost/x", "postgres", "/tmp/store.db"] {
        assert!(
            matches!(open(url, settings.clone()).await.unwrap_err(), OpenError::UnknownScheme),
            "{url}"
        );
    }
    for url in [
        "sqlite::memory:",
        "sqlite://",
        "sqlite://store.db?mode=memory",
        "postgres://u:hunter2@[bad/x",
    ] {
        let error = open(url, settings.clone()).await.unwrap_err();
        assert!(matches!(error, OpenError::InvalidUrl { .. }), "{url}: {error:?}");
        assert!(!format!("{error:?}").contains("hunter2"));
    }
}

#[tokio::test]
async fn an_unreachable_server_is_named_without_its_password() {
    let settings = StoreSettings {
        acquire_timeout: Duration::from_secs(2),
        ..TestDatabase::settings()
    };
    // The discard port: nothing listens there.
    let error = open("postgres://someone:hunter2@127.0.0.1:9/agents", settings)
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "can't connect to postgres://someone@127.0.0.1:9/agents"
    );
    assert!(error.source().is_some());
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[tokio::test]
async fn a_path_that_can_not_be_a_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().display());
    let error = open(&url, TestDatabase::settings()).await.unwrap_err();
    assert_eq!(error.to_string(), format!("can't connect to {url}"));
}

#[tokio::test]
async fn a_new_file_is_its_owner_s_alone() {
    let database = TestDatabase::sqlite();
    let store = open(database.url(), TestDatabase::settings()).await.unwrap();
    let path = Path::new(database.url().strip_prefix("sqlite://").unwrap());
    let files: Vec<_> = fs::read_dir(path.parent().unwrap())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(files.len() > 1, "the write-ahead log stands beside it");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{:?}", file.path());
    }
    store.close().await;
}

#[tokio::test]
async fn files_of_an_earlier_version_are_closed_to_others() {
    // One that was made without care, one that is shared with a group on purpose, and one that is
    // closed already.
    for (before, after) in [(0o644, 0o640), (0o664, 0o660), (0o600, 0o600)] {
        let database = TestDatabase::sqlite();
        let earlier = open(database.url(), TestDatabase::settings()).await.unwrap();
        let path = Path::new(database.url().strip_prefix("sqlite://").unwrap());
        let files = || {
            let files = fs::read_dir(path.parent().unwrap()).unwrap();
            files.map(|file| file.unwrap().path()).collect::<Vec<_>>()
        };
        assert_eq!(files().len(), 3, "the file, its log and the index of that");
        for file in files() {
            fs::set_permissions(&file, fs::Permissions::from_mode(before)).unwrap();
        }
        let store = open(database.url(), TestDatabase::settings()).await.unwrap();
        for file in files() {
            let mode = fs::metadata(&file).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, after, "{}", file.display());
        }
        store.close().await;
        earlier.close().await;
    }
}
