//! A database on PostgreSQL: made for one measurement, asked for its limits and for what was
//! written, dropped. It is read by the server's catalog, so that versions of the service with other
//! tables can be compared.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::CLIENTS;
use crate::procfs;
use crate::sample::{Sample, repeat};

/// A database of its own on a server that may be shared.
#[derive(Debug)]
pub(crate) struct PostgresDatabase {
    /// Connections of this program.
    pool: PgPool,
    server: PgConnectOptions,
    name: String,
    /// The first process of the server, if it is on this machine.
    pub(crate) server_process: Option<u32>,
}

/// The size of a row of the machine's own limit.
pub(crate) const LIMIT_BYTES: usize = 4096;

impl PostgresDatabase {
    /// Creates the database; the user must be allowed to.
    pub(crate) async fn create(server_url: &str) -> Result<Self> {
        let server: PgConnectOptions = server_url.parse().context("the URL of PostgreSQL")?;
        let name = format!("agent_runtime_load_{}", uuid::Uuid::now_v7().simple());
        let mut admin = server.connect().await.context("connect to PostgreSQL")?;
        sqlx::query(AssertSqlSafe(format!("create database {name}")))
            .execute(&mut admin)
            .await?;
        admin.close().await?;
        let connections = u32::try_from(CLIENTS)?;
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .test_before_acquire(false);
        let pool = pool.connect_with(server.clone().database(&name)).await?;
        let backend: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&pool).await?;
        let database = Self {
            server_process: server_process(u32::try_from(backend)?),
            pool,
            server,
            name,
        };
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            let value = database.setting(setting).await?;
            ensure!(
                value == "on",
                "{setting} is {value}: what is measured then means nothing"
            );
        }
        Ok(database)
    }

    /// Returns the URL for the service, optionally through another port.
    pub(crate) fn url(&self, port: Option<u16>) -> String {
        let mut url = self.server.clone().database(&self.name).to_url_lossy();
        // The port is that of a TCP address, so it can be set.
        let _ = url.set_port(Some(port.unwrap_or_else(|| self.server.get_port())));
        url.set_query(Some("sslmode=disable"));
        url.to_string()
    }

    /// Returns the address of the server.
    pub(crate) fn address(&self) -> String {
        format!("{}:{}", self.server.get_host(), self.server.get_port())
    }

    /// Describes the server in one line.
    pub(crate) async fn describe(&self) -> Result<String> {
        let version = self.setting("server_version").await?;
        let mut settings = Vec::new();
        for name in [
            "fsync",
            "synchronous_commit",
            "full_page_writes",
            "shared_buffers",
            "max_wal_size",
        ] {
            settings.push(format!("{name} {}", self.setting(name).await?));
        }
        Ok(format!("PostgreSQL {version} ({})", settings.join(", ")))
    }

    /// Measures single-row commits of 4 KB.
    pub(crate) async fn commit_limit(&self, clients: usize, window: Duration) -> Result<Sample> {
        sqlx::query("create table if not exists load_limit (id uuid primary key, payload bytea not null)")
            .execute(&self.pool)
            .await?;
        // In line, or each row would be several.
        sqlx::query("alter table load_limit alter column payload set storage plain")
            .execute(&self.pool)
            .await?;
        let pool = self.pool.clone();
        let sample = repeat(clients, window, move |()| {
            let pool = pool.clone();
            async move {
                let insert = sqlx::query("insert into load_limit values ($1, $2)").bind(uuid::Uuid::now_v7());
                insert.bind(noise(LIMIT_BYTES)).execute(&pool).await?;
                Ok(())
            }
        });
        let sample = sample.await?;
        // So that the next measurement begins as this one did.
        sqlx::query("truncate load_limit").execute(&self.pool).await?;
        Ok(sample)
    }

    /// Returns the bytes of write-ahead log ever written by the server.
    pub(crate) async fn wal_position(&self) -> Result<i64> {
        let position = sqlx::query_scalar("select (pg_current_wal_insert_lsn() - '0/0')::bigint");
        Ok(position.fetch_one(&self.pool).await?)
    }

    /// Returns how many transactions have written on this server: it gives a number to each that
    /// does, and to no other.
    pub(crate) async fn write_transactions(&self) -> Result<usize> {
        let next = sqlx::query_scalar("select pg_snapshot_xmax(pg_current_snapshot())::text::bigint");
        let next: i64 = next.fetch_one(&self.pool).await?;
        Ok(usize::try_from(next)?)
    }

    /// Returns the bytes of all tables on the disk, with their indexes.
    pub(crate) async fn size(&self) -> Result<u64> {
        let size = sqlx::query_scalar(
            "select coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class
                where relkind = 'r' and relnamespace = 'public'::regnamespace",
        );
        let size: i64 = size.fetch_one(&self.pool).await?;
        Ok(u64::try_from(size)?)
    }

    /// Returns the bytes of the rows of all tables.
    pub(crate) async fn row_bytes(&self) -> Result<i64> {
        let tables = "select string_agg(format('select sum(pg_column_size(t.*)) bytes from %s t', oid::regclass), \
            ' union all ') from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace";
        let sums: String = sqlx::query_scalar(tables).fetch_one(&self.pool).await?;
        let sum = AssertSqlSafe(format!("select coalesce(sum(bytes), 0)::bigint from ({sums}) sums"));
        Ok(sqlx::query_scalar(sum).fetch_one(&self.pool).await?)
    }

    /// Counts the runs that are in the queue, waiting or in progress.
    pub(crate) async fn queue_length(&self) -> Result<i64> {
        let length = sqlx::query_scalar("select count(*) from run_queue");
        Ok(length.fetch_one(&self.pool).await?)
    }

    /// Drops the database and closes its connections.
    pub(crate) async fn remove(self) -> Result<()> {
        self.pool.close().await;
        let mut admin = self.server.connect().await?;
        sqlx::query(AssertSqlSafe(format!("drop database {} with (force)", self.name)))
            .execute(&mut admin)
            .await?;
        Ok(admin.close().await?)
    }

    async fn setting(&self, name: &str) -> Result<String> {
        let setting = sqlx::query_scalar("select current_setting($1)").bind(name);
        setting
            .fetch_one(&self.pool)
            .await
            .with_context(|| format!("read the setting {name}"))
    }
}

/// Returns the process that has started this connection's, if both are on this machine.
fn server_process(backend: u32) -> Option<u32> {
    let server = procfs::parent(backend).ok()?;
    let names = [procfs::name(backend).ok()?, procfs::name(server).ok()?];
    (names == ["postgres", "postgres"]).then_some(server)
}

/// Returns bytes that don't compress.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(uuid::Uuid::now_v7().as_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}
