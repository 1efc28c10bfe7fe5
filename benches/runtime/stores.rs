//! Loading and committing sessions at several depths, on both stores. The cache of bundles is not
//! asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{Bencher, BenchmarkId, Criterion};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _};
use store::Store;
use tokio::runtime::Runtime;
use values::session::Bundle;
use values::tenant::TenantId;

use crate::fixtures::{compaction, grow, open, turn};

const DEPTHS: [usize; 3] = [1, 100, 10_000];
/// The messages that a summary leaves to be read.
const RETAINED: usize = 10;
/// The turns of a conversation that is short enough to need no summary.
const SHORT: usize = 20;
const SERVER: &str = "AGENT_RUNTIME_TEST_POSTGRES_URL";

pub(crate) fn benches(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    // /var/tmp is on a disk, so that a sync means something.
    let folder = tempfile::tempdir_in("/var/tmp").unwrap();
    let sqlite = format!("sqlite://{}", folder.path().join("bench.db").display());
    on_store(criterion, &runtime, "sqlite", &sqlite, None);
    match server() {
        Some(server) => {
            let name = format!("agent_runtime_bench_{}", uuid::Uuid::now_v7().simple());
            runtime.block_on(administer(&server, format!("create database {name}")));
            let database = server.clone().database(&name);
            let url = database.to_url_lossy();
            on_store(criterion, &runtime, "postgres", url.as_str(), Some(&database));
            runtime.block_on(administer(&server, format!("drop database {name} with (force)")));
        }
        None => left_out(),
    }
}

/// Times a store; `server` is the server's database, if it is on one.
fn on_store(criterion: &mut Criterion, runtime: &Runtime, name: &str, url: &str, server: Option<&PgConnectOptions>) {
    let mut group = criterion.benchmark_group(name);
    let store = runtime.block_on(open(url));
    // A server analyses tables that have grown within a minute, and plans anew: what is timed is
    // what comes after that.
    let analyze = || {
        if let Some(server) = server {
            runtime.block_on(administer(server, "analyze".to_owned()));
        }
    };
    let mut line = Line {
        parent: None,
        tip: None,
        length: 0,
    };
    for depth in DEPTHS {
        // Made only when a filter lets one of the two run, for depth 10,000 takes its time.
        group.bench_function(BenchmarkId::new("load, depth", depth), |bencher| {
            let tip = runtime.block_on(line.reach(&*store, depth));
            analyze();
            let (tenant, session_id) = (TenantId::anonymous(), tip.head.session_id);
            bencher.to_async(runtime).iter(|| async {
                let bundle = store.bundle_load(&tenant, session_id).await.unwrap().unwrap();
                assert_eq!(bundle.history.len(), 2 * (depth + 1));
                bundle
            });
        });
        group.bench_function(BenchmarkId::new("commit, depth", depth), |bencher| {
            runtime.block_on(line.reach(&*store, depth));
            let parent = line.parent.clone();
            bencher
                .to_async(runtime)
                .iter_custom(|times| commits(Arc::clone(&store), parent.clone(), times));
        });
    }
    group.bench_function(BenchmarkId::new("load, turns", SHORT), |bencher| {
        let tip = runtime.block_on(grow(&*store, None, SHORT));
        analyze();
        loads(bencher, runtime, &*store, &tip, 2 * SHORT);
    });
    for depth in DEPTHS.into_iter().filter(|depth| *depth > SHORT) {
        group.bench_function(BenchmarkId::new("load, compacted at depth", depth), |bencher| {
            let tip = runtime.block_on(line_of(&*store, depth));
            let compacted =
                runtime.block_on(async { store.session_commit(&compaction(&tip, RETAINED)).await.unwrap() });
            analyze();
            loads(bencher, runtime, &*store, &compacted.session, RETAINED + 1);
        });
    }
    group.finish();
    runtime.block_on(store.close());
}

/// Makes a conversation of its own, in segments of a turn.
async fn line_of(store: &dyn Store, depth: usize) -> Arc<Bundle> {
    grow(store, None, depth + 1).await
}

/// Times loads that hold so many messages.
fn loads(bencher: &mut Bencher<'_>, runtime: &Runtime, store: &dyn Store, tip: &Bundle, held: usize) {
    let (tenant, session_id) = (TenantId::anonymous(), tip.head.session_id);
    bencher.to_async(runtime).iter(|| async {
        let bundle = store.bundle_load(&tenant, session_id).await.unwrap().unwrap();
        assert_eq!(bundle.history.iter().count(), held);
        bundle
    });
}

/// A conversation that grows from depth to depth.
struct Line {
    parent: Option<Arc<Bundle>>,
    tip: Option<Arc<Bundle>>,
    length: usize,
}

impl Line {
    /// Returns the session at the depth, which is not below that of the last call.
    async fn reach(&mut self, store: &dyn Store, depth: usize) -> Arc<Bundle> {
        if self.length <= depth {
            let parent = grow(store, self.tip.take(), depth - self.length).await;
            self.tip = Some(grow(store, Some(Arc::clone(&parent)), 1).await);
            self.parent = Some(parent);
            self.length = depth + 1;
        }
        self.tip.clone().unwrap()
    }
}

/// Times commits that append to a branch, each to one that was just opened beside the line.
async fn commits(store: Arc<dyn Store>, parent: Option<Arc<Bundle>>, times: u64) -> Duration {
    let mut taken = Duration::ZERO;
    for _ in 0..times {
        let fork = grow(&*store, parent.clone(), 1).await;
        let commit = turn(Some(&fork));
        let began = Instant::now();
        store.session_commit(&commit).await.unwrap();
        taken += began.elapsed();
    }
    taken
}

#[expect(
    clippy::disallowed_methods,
    reason = "only the benchmark's own server is named there"
)]
fn server() -> Option<PgConnectOptions> {
    std::env::var(SERVER).ok().map(|url| url.parse().unwrap())
}

async fn administer(server: &PgConnectOptions, statement: String) {
    let mut connection: PgConnection = server.connect().await.unwrap();
    sqlx::query(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await
        .unwrap();
}

#[expect(clippy::print_stderr, reason = "a missing half must not go unnoticed")]
fn left_out() {
    eprintln!(
        "!!! LEFT OUT: PostgreSQL, since {SERVER} is not set; run scripts/with-servers cargo bench --profile dist"
    );
}
