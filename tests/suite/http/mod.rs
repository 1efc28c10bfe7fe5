//! The HTTP interface over real sockets, on real stores, with a mock model provider behind it.

/// Runs tests, each an `async fn(&Service)`, on SQLite and, where there is a server, on PostgreSQL.
macro_rules! on_every_store {
    ($($test:ident,)+) => { on_every_store! { with &[]; $($test,)+ } };
    (with $settings:expr; $($test:ident,)+) => {$(
        mod $test {
            use crate::support::databases::{Engine, TestDatabase};

            #[tokio::test]
            async fn on_sqlite() {
                on(Engine::Sqlite).await;
            }

            #[tokio::test]
            async fn on_postgres() {
                on(Engine::Postgres).await;
            }

            async fn on(engine: Engine) {
                let Some(database) = TestDatabase::new(engine).await else { return };
                let service = crate::http::service::Service::start_on(database, $settings).await;
                super::$test(&service).await;
                service.finish().await;
            }
        }
    )+};
}

mod agents;
mod auth;
mod bad_headers;
mod bad_input;
mod bad_reads;
mod bad_requests;
mod compacted;
mod connections;
mod deliveries;
mod documents;
mod event_room;
mod guides;
mod hooks;
mod hosts;
mod imports;
mod large_reads;
mod live_runs;
mod logs;
mod mistaken_ids;
mod named_faults;
mod pretty;
mod removal;
mod rivals;
mod room;
mod runs;
mod service;
mod session_sizes;
mod sessions;
mod shutdown;
mod steering_bodies;
mod store_failures;
mod subagents;
mod threads;
mod unread;
mod wrong_types;
