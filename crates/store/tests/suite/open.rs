//! Opening: what is missing is made, what does not fit is refused, many may start at once.

use std::error::Error as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::future::join_all;
use store::{CommitError, OpenError, StoreError, StoreSettings, migrate, open};
use test_support::databases::{Engine, TestDatabase};
use test_support::logs::{CapturedLog, listen};

use super::fixtures::Fixture;

on_both_engines!(
    another_schema_is_refused,
    what_was_committed_is_there_after_reopening,
    a_closed_store_is_unavailable
);

/// Returns the versions that the migrations make, oldest first.
fn versions_of_the_schema() -> Vec<i64> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
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
    let lookup = async |session_id| fixture.head(session_id).await;
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

async fn a_closed_store_is_unavailable(fixture: Fixture) {
    let commit = fixture.commit(None, &["root"]);
    fixture.store.close().await;
    let error = fixture.store.session_commit(&commit).await.unwrap_err();
    assert!(
        matches!(error, store::CommitError::Store(StoreError::Unavailable { .. })),
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
