//! A fresh database per test: a file for SQLite, a database of its own on the PostgreSQL server
//! that the environment names.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Connection as _, PgConnection, Row as _, SqliteConnection};
use store::{StoreSettings, migrate};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::OnceCell;
use uuid::Uuid;

use crate::environment::{REQUIRE, variable};
use crate::wait::until;

/// The address of a superuser on a PostgreSQL server for tests.
const SERVER: &str = "AGENT_RUNTIME_TEST_POSTGRES_URL";
/// Tests decide when the server analyzes and vacuums tables. When it does so by itself, plans
/// change in the middle of a test.
const NO_AUTOVACUUM: &str = "do $$
    declare
        name regclass;
    begin
        for name in select oid from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r' loop
            execute format('alter table %s set (autovacuum_enabled = false)', name);
        end loop;
    end
$$";
/// How long a statement waits for other writers of a file, whose turns SQLite does not order.
const WRITER_LIMIT: Duration = Duration::from_mins(1);

/// Which engine a test runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    Postgres,
    Sqlite,
}

/// A database that goes away with its test.
#[derive(Debug)]
pub struct TestDatabase {
    pub engine: Engine,
    url: String,
    /// The server's address and the database's name, on PostgreSQL.
    pub(crate) server: Option<(String, String)>,
    /// A connection for the next read: tests read over and over until something is there.
    reading: Mutex<Option<PgConnection>>,
    _folder: Option<TempDir>,
}

impl TestDatabase {
    /// Makes a database for a store that is to be opened; `None` when there is no server and none
    /// is required. On PostgreSQL it has the tables of this version already, for making them takes
    /// longer than most tests.
    pub async fn new(engine: Engine) -> Option<Self> {
        match engine {
            Engine::Sqlite => Some(Self::sqlite()),
            Engine::Postgres => Self::postgres().await,
        }
    }

    /// Makes a database without tables; `None` when there is no server and none is required.
    pub async fn empty(engine: Engine) -> Option<Self> {
        let database = Self::new(engine).await?;
        database.remove_tables().await;
        Some(database)
    }

    /// Removes the tables that the database has had from the first.
    pub async fn remove_tables(&self) {
        if self.engine == Engine::Postgres {
            self.execute("drop schema public cascade; create schema public")
                .await
                .unwrap();
        }
    }

    /// Makes a path for a file that is not there yet.
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            engine: Engine::Sqlite,
            url: format!("sqlite://{}", folder.path().join("new/store.db").display()),
            server: None,
            reading: Mutex::default(),
            _folder: Some(folder),
        }
    }

    /// Makes a database with the tables of this version on the server; `None` when there is none
    /// and none is required.
    pub async fn postgres() -> Option<Self> {
        static TEMPLATE: OnceCell<String> = OnceCell::const_new();
        let server = server()?;
        let template = TEMPLATE.get_or_init(|| make_template(&server)).await;
        let name = format!("test_{}", Uuid::now_v7().simple());
        // Copying files costs half of what copying block by block does.
        let create = format!("create database {name} template {template} strategy file_copy");
        administer(&server, create).unwrap();
        Some(Self {
            engine: Engine::Postgres,
            url: with_database(&server, &name),
            server: Some((server, name)),
            reading: Mutex::default(),
            _folder: None,
        })
    }

    /// Returns the address that a store is opened by.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the address for a process whose connections PostgreSQL is to know by a name.
    pub fn url_for(&self, name: &str) -> String {
        match self.engine {
            Engine::Sqlite => self.url.clone(),
            Engine::Postgres => {
                let separator = if self.url.contains('?') { '&' } else { '?' };
                format!("{}{separator}application_name={name}", self.url)
            }
        }
    }

    /// Waits until PostgreSQL has noticed that the process of this name is gone, and has executed
    /// what that had sent.
    pub async fn until_disconnected(&self, name: &str) {
        if self.engine == Engine::Postgres {
            let count = format!("select count(*) from pg_stat_activity where application_name = '{name}'");
            until("connections of a process that is gone", async || {
                self.number(&count).await == 0
            })
            .await;
        }
    }

    /// Settings that share the server with many other tests.
    pub fn settings() -> StoreSettings {
        StoreSettings {
            max_connections: 4,
            acquire_timeout: Duration::from_secs(20),
            migrate: true,
            listen_url: None,
            observer: None,
        }
    }

    /// Runs statements past the store.
    pub async fn execute(&self, sql: &str) -> Result<(), sqlx::Error> {
        // The server counts what a connection has read when it ends.
        drop(self.reading.lock().unwrap().take());
        match self.engine {
            Engine::Postgres => execute_on(&self.url, sql).await,
            Engine::Sqlite => {
                let options: SqliteConnectOptions = self.url.parse()?;
                let options = options.busy_timeout(WRITER_LIMIT);
                let mut connection = SqliteConnection::connect_with(&options).await?;
                let statements = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
                statements.execute(&mut connection).await?;
                connection.close().await
            }
        }
    }

    /// Counts the clients of a PostgreSQL server that wait for a lock. Processes of the server
    /// itself may wait, too, since they analyze tables.
    pub async fn waiting_clients(&self) -> i64 {
        let waiting = "select count(*) from pg_stat_activity
            where datname = current_database() and backend_type = 'client backend' and wait_event_type = 'Lock'";
        self.number(waiting).await
    }

    /// Reads one number past the store.
    pub async fn number(&self, sql: &str) -> i64 {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self.engine {
            Engine::Postgres => {
                let mut connection = self.reading_connection().await;
                let number = statement.fetch_one(&mut connection).await.unwrap().get(0);
                *self.reading.lock().unwrap() = Some(connection);
                number
            }
            Engine::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
                statement.fetch_one(&mut connection).await.unwrap().get(0)
            }
        }
    }

    /// Reads the texts of one column past the store.
    pub async fn texts(&self, sql: &str) -> Vec<String> {
        let statement = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
        match self.engine {
            Engine::Postgres => {
                let mut connection = self.reading_connection().await;
                let rows = statement.fetch_all(&mut connection).await.unwrap();
                *self.reading.lock().unwrap() = Some(connection);
                rows.iter().map(|row| row.get(0)).collect()
            }
            Engine::Sqlite => {
                let mut connection = SqliteConnection::connect(&self.url).await.unwrap();
                let rows = statement.fetch_all(&mut connection).await.unwrap();
                rows.iter().map(|row| row.get(0)).collect()
            }
        }
    }

    /// Takes the connection of the last read, or opens one.
    async fn reading_connection(&self) -> PgConnection {
        let held = self.reading.lock().unwrap().take();
        if let Some(mut connection) = held
            && connection.ping().await.is_ok()
        {
            return connection;
        }
        PgConnection::connect(&self.url).await.unwrap()
    }

    /// Turns off what protects committed rows from changes.
    pub async fn allow_updates(&self) {
        for table in [
            "history_branches",
            "history_segments",
            "states",
            "sessions",
            "agent_versions",
            "contents",
        ] {
            let sql = match self.engine {
                Engine::Postgres => format!("drop trigger {table}_are_immutable on {table}"),
                Engine::Sqlite => format!("drop trigger {table}_are_immutable"),
            };
            self.execute(&sql).await.unwrap();
        }
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let Some((server, name)) = self.server.take() else {
            return;
        };
        if administer(&server, format!("drop database {name} with (force)")).is_err() {
            eprintln!("a test's database was left behind");
        }
    }
}

/// Runs a statement about databases and waits for it. All of a process run on one connection, since
/// opening one costs as much as dropping a database, and not on the runtime of a test, which may be
/// shutting down.
fn administer(server: &str, statement: String) -> thread::Result<()> {
    static HELD: Mutex<Option<(Runtime, PgConnection)>> = Mutex::new(None);
    let server = server.to_owned();
    let work = thread::spawn(move || {
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        let (runtime, mut connection) = held.take().unwrap_or_else(|| {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            let connection = runtime.block_on(PgConnection::connect(&server)).unwrap();
            (runtime, connection)
        });
        let statement = sqlx::raw_sql(AssertSqlSafe(statement));
        runtime.block_on(statement.execute(&mut connection)).unwrap();
        // A connection on which a statement fails is not used again.
        *held = Some((runtime, connection));
    });
    work.join()
}

/// Returns the server's address; `None` when there is none and none is required.
fn server() -> Option<String> {
    let server = variable(SERVER);
    if server.is_none() {
        assert!(variable(REQUIRE).is_none(), "{REQUIRE} is set and {SERVER} is not");
        eprintln!("SKIPPED: {SERVER} names no PostgreSQL server");
    }
    server
}

/// Makes the database from which those of tests are copied, unless the server has it from tests
/// before. Its name is a hash of the migrations that made it.
async fn make_template(server: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations/postgres");
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let mut files: Vec<PathBuf> = files.collect();
    files.sort();
    let mut hasher = DefaultHasher::new();
    for file in files {
        fs::read(file).unwrap().hash(&mut hasher);
    }
    let template = format!("test_template_{:016x}", hasher.finish());

    let mut connection = PgConnection::connect(server).await.unwrap();
    // Another process may be making it.
    sqlx::query("select pg_advisory_lock(7)")
        .execute(&mut connection)
        .await
        .unwrap();
    let found = sqlx::query("select 1 from pg_database where datname = $1").bind(&template);
    if found.fetch_optional(&mut connection).await.unwrap().is_none() {
        // It has its name once it is whole.
        let name = format!("{template}_{}", Uuid::now_v7().simple());
        execute_on(server, &format!("create database {name}")).await.unwrap();
        let made = with_database(server, &name);
        migrate(&made).await.unwrap();
        execute_on(&made, NO_AUTOVACUUM).await.unwrap();
        // What the first connection finds out about the tables is stored beside them, and so copied
        // with them.
        execute_on(&made, "select").await.unwrap();
        execute_on(server, &format!("alter database {name} rename to {template}"))
            .await
            .unwrap();
    }
    connection.close().await.unwrap();
    template
}

/// Runs statements on PostgreSQL, on a connection of their own.
async fn execute_on(url: &str, sql: &str) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    let statements = sqlx::raw_sql(AssertSqlSafe(sql.to_owned()));
    statements.execute(&mut connection).await?;
    connection.close().await
}

/// Replaces the database in an address such as
/// `postgres://user@host:5432/postgres?sslmode=disable`.
fn with_database(server: &str, name: &str) -> String {
    let (address, parameters) = server
        .split_once('?')
        .map_or((server, None), |(left, right)| (left, Some(right)));
    let host = address.find("://").map_or(0, |at| at + 3);
    let end = address[host..].find('/').map_or(address.len(), |at| host + at);
    let parameters = parameters.map_or(String::new(), |parameters| format!("?{parameters}"));
    format!("{}/{name}{parameters}", &address[..end])
}
