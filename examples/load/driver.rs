//! The database driver's share of the processor time: the driver alone, sending a statement like a
//! commit's as often as it can.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;
use sqlx::{AssertSqlSafe, SqlSafeStr as _};

use crate::postgres::{PostgresDatabase, noise};
use crate::procfs;
use crate::sample::{count, repeat};

/// The parameters of a commit's statement by kind: 58 in all.
const IDS: usize = 6;
const NUMBERS: usize = 24;
const TEXTS: usize = 18;
const HASHES: usize = 8;
/// What share of a turn's bytes each of the payloads has.
const PAYLOADS: usize = 2;

/// Measures the processor time of this process per statement of one row with `bytes` in 58 columns.
pub(crate) async fn cpu_per_statement(
    database: &PostgresDatabase,
    clients: usize,
    window: Duration,
    bytes: usize,
) -> Result<Duration> {
    let (create, insert) = statements();
    sqlx::query(AssertSqlSafe(create)).execute(&database.pool).await?;
    let insert = AssertSqlSafe(insert).into_sql_str();
    let payload = noise(bytes.saturating_sub(IDS * 16 + NUMBERS * 8 + TEXTS * 8 + HASHES * 32) / PAYLOADS);
    let pool = database.pool.clone();
    let operation = move |()| {
        let (pool, insert, payload) = (pool.clone(), insert.clone(), payload.clone());
        async move {
            let mut query = sqlx::query(insert);
            for _ in 0..IDS {
                query = query.bind(uuid::Uuid::nil());
            }
            for _ in 0..NUMBERS {
                query = query.bind(1_i64);
            }
            for _ in 0..TEXTS {
                query = query.bind("eight by");
            }
            for _ in 0..HASHES {
                query = query.bind([0_u8; 32].as_slice());
            }
            for _ in 0..PAYLOADS {
                query = query.bind(payload.as_slice());
            }
            query.execute(&pool).await?;
            Ok(())
        }
    };
    repeat(clients, Duration::from_secs(1), operation.clone()).await?;
    let before = procfs::cpu_time(std::process::id())?;
    let sample = repeat(clients, window, operation).await?;
    let used = procfs::cpu_time(std::process::id())?.saturating_sub(before);
    sqlx::query("drop table load_driver").execute(&database.pool).await?;
    Ok(used.div_f64(count(sample.count().max(1))))
}

fn statements() -> (String, String) {
    let kinds = [
        ("uuid", IDS),
        ("bigint", NUMBERS),
        ("text", TEXTS),
        ("bytea", HASHES + PAYLOADS),
    ];
    let kinds = kinds
        .into_iter()
        .flat_map(|(kind, times)| std::iter::repeat_n(kind, times));
    let (mut columns, mut values) = (String::new(), String::new());
    for (index, kind) in kinds.enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        let number = index + 1;
        // Writing to a string can't fail.
        let _ = write!(columns, "{separator}c{number} {kind}");
        let _ = write!(values, "{separator}${number}");
    }
    (
        format!("create table load_driver ({columns})"),
        format!("insert into load_driver values ({values})"),
    )
}
