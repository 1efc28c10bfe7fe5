//! The promises of the storage traits, stated once and run on both engines. The folders are those
//! of `crates/store/src`.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that meets what it does not expect fails"
)]

// To its own tests, Cargo gives a library by its full name only.
extern crate agent_runtime_store as store;

/// Runs each of the functions on both engines, each on a database of its own.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = crate::fixtures::Fixture::new(test_support::databases::Engine::Sqlite).await;
                super::$name(fixture.unwrap()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = crate::fixtures::Fixture::new(test_support::databases::Engine::Postgres).await;
                if let Some(fixture) = fixture {
                    super::$name(fixture).await;
                }
            })+
        }
    };
}

mod batched_write;
mod fixtures;

mod cache;
mod large_writes;
mod observer;
mod open;
mod outage;
mod rows;

mod model;
mod model_check;

mod postgres;
mod sql;
