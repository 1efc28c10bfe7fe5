//! What the storage traits promise, stated once and run on both engines. The folders are those of
//! `crates/store/src`.

/// Runs each of the functions on both engines, each on a database of its own.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = crate::store::fixtures::Fixture::new(test_support::databases::Engine::Sqlite).await;
                super::$name(fixture.unwrap()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = crate::store::fixtures::Fixture::new(test_support::databases::Engine::Postgres).await;
                if let Some(fixture) = fixture {
                    super::$name(fixture).await;
                }
            })+
        }
    };
}

pub(crate) mod batched_write;
pub(crate) mod fixtures;

mod cache;
mod large_writes;
mod open;
mod outage;
mod rows;

mod model;
mod model_check;

pub(crate) mod postgres;
pub(crate) mod sql;
