//! The HTTP interface over real sockets, on real stores, with a mock model provider behind it.

/// Runs tests, each an `async fn(&Service)`, on SQLite and, where there is a server, on PostgreSQL.
macro_rules! on_every_store {
    ($($test:ident,)+) => { on_every_store! { with &[]; $($test,)+ } };
    (with $settings:expr; $($test:ident,)+) => {$(
        mod $test {
            use test_support::databases::{Engine, TestDatabase};

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

mod about;
mod ag_ui;
mod agents;
mod ai_sdk;
mod audit;
mod auth;
mod changes;
mod codes;
mod compression;
mod connection;
mod console;
mod cross_origin;
mod deliveries;
mod docs;
mod dropped_readers;
mod face_app;
mod guards;
mod guides;
mod headers;
mod host;
mod in_flight;
mod json_body;
mod json_errors;
mod langgraph;
pub(crate) mod mcp;
mod metrics;
mod observe;
mod openai;
mod parameters;
mod pretty;
mod problem;
mod refusal;
mod refused;
mod routes;
mod runs;
mod server;
mod service;
mod sessions;
mod thread_details;
mod thread_files;
mod threads;
pub(crate) mod tokens;
mod unparsed;
