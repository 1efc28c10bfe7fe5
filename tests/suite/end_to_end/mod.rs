//! The whole service, driven over HTTP on both stores: what a gateway relies on.

mod asynchronous;
mod background_loops;
mod budgets;
mod compaction;
mod continuations;
mod control_messages;
mod cut_completions;
mod cut_summaries;
mod deferred_tools;
mod disconnects;
mod drivers;
mod failures;
mod for_this_run;
mod hooks;
mod http_tools;
mod idempotency;
mod input_sections;
mod limits;
mod long_streams;
mod lost_commit_responses;
mod model_requests;
mod model_switches;
mod models;
mod provider_tools;
mod providers;
mod refused_parts;
mod request_prefix;
mod resumption;
mod session_overrides;
mod slow_readers;
mod spending;
mod steering;
mod stored_files;
mod streams;
mod structured_output;
mod subagents;
mod tenant_quotas;
mod thinking;
mod threads;
mod too_long;
mod tools;
pub(crate) mod waiting;
pub(crate) mod workspaces;

/// Runs each named test, an `async fn(TestDatabase)`, once on every store.
macro_rules! on_every_store {
    ($($name:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(test_support::databases::TestDatabase::sqlite()).await;
            })+
        }

        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                if let Some(database) = test_support::databases::TestDatabase::postgres().await {
                    super::$name(database).await;
                }
            })+
        }
    };
}
pub(crate) use on_every_store;
