//! Outages and errors of a database while a service uses it.

use sqlx::{AssertSqlSafe, Connection as _, PgConnection, SqliteConnection};

use crate::databases::{Engine, TestDatabase};
use crate::internals::INTERNALS;
use crate::wait::until;

/// How long PostgreSQL may take to end a connection, in milliseconds. Before that it may
/// still respond to a query.
const PATIENCE: u64 = 20_000;

impl TestDatabase {
    /// Makes all messages unreadable.
    pub async fn corrupt_segments(&self) {
        self.allow_updates().await;
        let zeros = match self.engine {
            Engine::Postgres => r"'\x00'::bytea",
            Engine::Sqlite => "x'00'",
        };
        self.execute(&format!("update history_segments set payload = {zeros}"))
            .await
            .unwrap();
    }

    /// Makes reading the tables fail for good, with an error that has [`INTERNALS`] in it.
    pub async fn break_tables(&self, tables: &[&str]) {
        // Each engine evaluates its condition once, independently of the rows. It is no error of
        // preparation, which SQLite would remember after the tables were mended.
        let failing = match self.engine {
            Engine::Sqlite => format!("json_extract('{{}}', '{INTERNALS}')"),
            Engine::Postgres => format!("(select {INTERNALS}())"),
        };
        if self.engine == Engine::Postgres {
            let body = format!("begin raise exception 'relation {INTERNALS} does not exist'; end");
            let function = format!("create function {INTERNALS}() returns boolean language plpgsql as $${body}$$");
            self.execute(&function).await.unwrap();
        }
        for table in tables {
            let rename = format!("alter table {table} rename to hidden_{table}");
            self.execute(&rename).await.unwrap();
            let view = format!("create view {table} as select * from hidden_{table} where {failing}");
            self.execute(&view).await.unwrap();
        }
    }

    /// Undoes [`Self::break_tables`].
    pub async fn mend_tables(&self, tables: &[&str]) {
        for table in tables {
            self.execute(&format!("drop view {table}")).await.unwrap();
            let rename = format!("alter table hidden_{table} rename to {table}");
            self.execute(&rename).await.unwrap();
        }
        if self.engine == Engine::Postgres {
            self.execute(&format!("drop function {INTERNALS}()")).await.unwrap();
        }
    }

    /// Makes writing fail until the outage is ended: PostgreSQL is out of reach, SQLite is locked
    /// by another process.
    pub async fn begin_outage(&self) -> Outage {
        let Some((server, name)) = &self.server else {
            return Outage::Transaction(self.locked_sqlite().await);
        };
        let mut connection = PgConnection::connect(server).await.unwrap();
        let close = format!("alter database {name} with allow_connections false");
        sqlx::raw_sql(AssertSqlSafe(close))
            .execute(&mut connection)
            .await
            .unwrap();
        // A connection that was let in just before holds a lock before it is listed as an activity.
        let end =
            format!("select pg_terminate_backend(pid, {PATIENCE}) from pg_stat_activity where datname = '{name}'");
        let others = format!(
            "select exists (select from pg_locks join pg_database on pg_database.oid = objid \
             where classid = 'pg_database'::regclass and datname = '{name}') \
             or exists (select from pg_stat_activity where datname = '{name}')"
        );
        until("somebody stays connected", async || {
            sqlx::raw_sql(AssertSqlSafe(end.clone()))
                .execute(&mut connection)
                .await
                .unwrap();
            !sqlx::query_scalar::<_, bool>(AssertSqlSafe(others.clone()))
                .fetch_one(&mut connection)
                .await
                .unwrap()
        })
        .await;
        Outage::Closed(connection, name.clone())
    }

    /// Makes writing to a table wait, and on PostgreSQL reading too, until it is ended.
    pub async fn begin_stall(&self, table: &str) -> Outage {
        match self.engine {
            Engine::Sqlite => Outage::Transaction(self.locked_sqlite().await),
            Engine::Postgres => {
                self.locked_postgres(format!("lock table {table} in access exclusive mode"))
                    .await
            }
        }
    }

    /// Makes removals of sessions wait until it is ended. SQLite has one writer, which removals and
    /// all others take in turn.
    pub async fn stall_removals(&self) -> Option<Outage> {
        self.server.as_ref()?;
        Some(
            self.locked_postgres("select 1 from removal_turn for update".to_owned())
                .await,
        )
    }

    /// Holds what the statement locks on PostgreSQL.
    async fn locked_postgres(&self, statement: String) -> Outage {
        let mut connection = PgConnection::connect(self.url()).await.unwrap();
        sqlx::raw_sql(AssertSqlSafe(format!("begin; {statement}")))
            .execute(&mut connection)
            .await
            .unwrap();
        Outage::Lock(connection)
    }

    async fn locked_sqlite(&self) -> SqliteConnection {
        let mut connection = SqliteConnection::connect(self.url()).await.unwrap();
        sqlx::raw_sql("begin immediate").execute(&mut connection).await.unwrap();
        connection
    }
}

/// A time in which a database can't be used.
#[derive(Debug)]
#[must_use = "the outage lasts until it is ended"]
pub enum Outage {
    /// The database takes no connections.
    Closed(PgConnection, String),
    /// A transaction holds a lock on a table.
    Lock(PgConnection),
    /// A transaction holds the lock of the only writer.
    Transaction(SqliteConnection),
}

impl Outage {
    /// Ends it.
    pub async fn end(self) {
        match self {
            Self::Closed(mut connection, name) => {
                let sql = format!("alter database {name} with allow_connections true");
                sqlx::raw_sql(AssertSqlSafe(sql))
                    .execute(&mut connection)
                    .await
                    .unwrap();
            }
            Self::Lock(mut connection) => {
                sqlx::raw_sql("rollback").execute(&mut connection).await.unwrap();
            }
            Self::Transaction(mut connection) => {
                sqlx::raw_sql("rollback").execute(&mut connection).await.unwrap();
            }
        }
    }
}
