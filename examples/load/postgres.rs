//! The database under load on PostgreSQL: made for one run of this program, asked for its limits
//! and for what was written, dropped.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _};

use crate::sample::{Sample, repeat};

/// A database of its own on a server that may be shared.
#[derive(Debug)]
pub(crate) struct PostgresDatabase {
    /// Connections of this program.
    pub(crate) pool: PgPool,
    server: PgConnectOptions,
    name: String,
}

/// The size of a row of the machine's own limit.
pub(crate) const LIMIT_BYTES: usize = 4096;

impl PostgresDatabase {
    /// Creates the database; the user must be allowed to.
    pub(crate) async fn create(server_url: &str, clients: usize) -> Result<Self> {
        let server: PgConnectOptions = server_url.parse().context("the URL of PostgreSQL")?;
        let name = format!("agent_runtime_load_{}", uuid::Uuid::now_v7().simple());
        let mut admin = server.connect().await.context("connect to PostgreSQL")?;
        sqlx::query(AssertSqlSafe(format!("create database {name}")))
            .execute(&mut admin)
            .await?;
        admin.close().await?;
        let connections = u32::try_from(clients)?;
        let pool = PgPoolOptions::new()
            .max_connections(connections)
            .test_before_acquire(false);
        let pool = pool.connect_with(server.clone().database(&name)).await?;
        let database = Self { pool, server, name };
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
        sqlx::query("truncate load_limit").execute(&self.pool).await?;
        Ok(sample)
    }

    /// Returns the bytes of write-ahead log ever written by the server.
    pub(crate) async fn wal_position(&self) -> Result<i64> {
        let position = sqlx::query_scalar("select (pg_current_wal_insert_lsn() - '0/0')::bigint");
        Ok(position.fetch_one(&self.pool).await?)
    }

    /// Returns the bytes of the rows that the commit of a session wrote.
    pub(crate) async fn row_bytes(&self, session_id: uuid::Uuid) -> Result<i64> {
        let sum = sqlx::query_scalar(
            "select (
                pg_column_size(s.*)
                + (select pg_column_size(r.*) from runs r where r.tenant = s.tenant and r.session_id = s.session_id)
                + (select pg_column_size(h.*) from history_segments h
                    where h.tenant = s.tenant and h.branch_id = s.branch_id and h.position = s.position)
                + (select coalesce(sum(pg_column_size(t.*)), 0) from states t
                    where t.tenant = s.tenant and t.hash in (s.environment_hash, s.context_hash)
                    and not exists (select from sessions p
                        where p.tenant = s.tenant and p.session_id = s.parent_session_id
                        and t.hash in (p.environment_hash, p.context_hash)))
            )::bigint from sessions s where s.session_id = $1",
        );
        Ok(sum.bind(session_id).fetch_one(&self.pool).await?)
    }

    /// Counts the runs that are in the queue, waiting or in progress.
    pub(crate) async fn queue_length(&self) -> Result<i64> {
        let length = sqlx::query_scalar("select count(*) from run_queue");
        Ok(length.fetch_one(&self.pool).await?)
    }

    /// Counts the asynchronous runs that have completed.
    pub(crate) async fn queued_runs_completed(&self) -> Result<usize> {
        let count = sqlx::query_scalar("select count(*) from runs where mode = 'async' and status = 'completed'");
        let count: i64 = count.fetch_one(&self.pool).await?;
        Ok(usize::try_from(count)?)
    }

    /// Returns how long asynchronous runs have waited to be begun, but for so many of the first.
    pub(crate) async fn queue_waits(&self, skipped: usize) -> Result<Vec<Duration>> {
        let waits = sqlx::query_scalar(
            "select extract(epoch from started_at - created_at)::float8 from runs
                where mode = 'async' order by run_id offset $1",
        );
        let waits: Vec<f64> = waits.bind(i64::try_from(skipped)?).fetch_all(&self.pool).await?;
        // The clocks of two processes are read: the younger time may be the smaller one by a
        // little.
        Ok(waits
            .into_iter()
            .map(|wait| Duration::from_secs_f64(wait.max(0.0)))
            .collect())
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

/// Returns bytes that don't compress.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(uuid::Uuid::now_v7().as_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}
