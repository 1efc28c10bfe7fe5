//! The world that tools act upon: it records every effect before it confirms it,
//! in a database of its own that no mishap touches.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions};

/// One effect of one call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Effect {
    /// The call's idempotency key.
    pub(crate) call_key: String,
    /// The tool's name.
    pub(crate) tool: String,
    /// The name of the request: the words of its user.
    pub(crate) note: String,
    /// Which of the request's calls it is.
    pub(crate) part: i64,
}

/// The ledger, reachable over HTTP.
#[derive(Debug)]
pub(crate) struct Ledger {
    /// Where effects are posted to.
    pub(crate) url: String,
    pool: SqlitePool,
}

impl Ledger {
    /// Opens a ledger in a folder; it serves until the process ends.
    pub(crate) async fn open(folder: &Path) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(folder.join("ledger.db"))
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal);
        let pool = SqlitePoolOptions::new()
            .max_connections(1)
            .connect_with(options)
            .await?;
        sqlx::query(
            "create table effects (
                number integer primary key, call_key text not null, tool text not null, note text not null, part integer not null
            )",
        )
        .execute(&pool)
        .await?;
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/effects", listener.local_addr()?);
        let router = Router::new()
            .route("/effects", post(record))
            .with_state(Arc::new(pool.clone()));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { url, pool })
    }

    /// Lists all effects, in the order in which they happened.
    pub(crate) async fn effects(&self) -> Result<Vec<Effect>> {
        let rows = sqlx::query_as("select call_key, tool, note, part from effects order by number");
        let rows: Vec<(String, String, String, i64)> = rows.fetch_all(&self.pool).await.context("read the ledger")?;
        let effects = rows.into_iter().map(|(call_key, tool, note, part)| Effect {
            call_key,
            tool,
            note,
            part,
        });
        Ok(effects.collect())
    }
}

async fn record(State(pool): State<Arc<SqlitePool>>, Json(effect): Json<Effect>) -> StatusCode {
    let insert = sqlx::query("insert into effects (call_key, tool, note, part) values (?, ?, ?, ?)")
        .bind(effect.call_key)
        .bind(effect.tool)
        .bind(effect.note)
        .bind(effect.part);
    match insert.execute(&*pool).await {
        Ok(_) => StatusCode::NO_CONTENT,
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}
