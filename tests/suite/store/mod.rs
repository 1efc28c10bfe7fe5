//! What the storage traits promise, stated once and run on both engines.

/// Runs each of the functions on both engines, each on a database of its own.
macro_rules! on_both_engines {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = crate::store::fixtures::Fixture::new(crate::support::databases::Engine::Sqlite).await;
                super::$name(fixture.unwrap()).await;
            })+
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let fixture = crate::store::fixtures::Fixture::new(crate::support::databases::Engine::Postgres).await;
                if let Some(fixture) = fixture {
                    super::$name(fixture).await;
                }
            })+
        }
    };
}

pub(crate) mod fixtures;

mod agents;
mod bundles;
mod cache;
mod cancellation;
mod conflicts;
mod damage;
mod due;
mod held;
mod hostile;
mod keys;
mod large_writes;
mod lists;
mod model;
mod model_check;
mod opening;
mod outage;
mod outbox;
mod postgres_only;
mod queue;
mod reads;
mod retention;
mod runs;
mod silent_answers;
mod subagent_failures;
mod subagents;
mod threads;
mod verify;
mod waiting_reads;
mod windows;
