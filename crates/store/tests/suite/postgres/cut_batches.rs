//! A batch whose connection is cut, at any byte of the request or of the response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures_util::future::join_all;
use store::{CommitError, Store, StoreSettings, open};
use test_support::databases::TestDatabase;
use test_support::environment::variable;
use test_support::proxy::split_url;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use values::session::Bundle;

use crate::batched_write::{BatchedWrite, LeasedTestRun, Written, keyed_run};
use crate::fixtures::{Fixture, postgres};
use crate::sql::queue::fixtures::queued_run;

/// If this is set, the test cuts at every byte, which takes a quarter of an hour or more.
const EVERY_BYTE: &str = "AGENT_RUNTIME_TEST_EVERY_BYTE";

/// How many bytes may still pass in one direction, before the connection is cut that sends more.
#[derive(Debug, Default)]
struct Allowance {
    is_limited: AtomicBool,
    left: AtomicUsize,
    passed: AtomicUsize,
}

impl Allowance {
    fn limit(&self, bytes: usize) {
        self.left.store(bytes, Ordering::SeqCst);
        self.is_limited.store(true, Ordering::SeqCst);
    }

    /// Returns how many of these bytes may pass.
    fn take(&self, bytes: usize) -> usize {
        self.passed.fetch_add(bytes, Ordering::SeqCst);
        if !self.is_limited.load(Ordering::SeqCst) {
            return bytes;
        }
        let left = self.left.load(Ordering::SeqCst);
        if left >= bytes {
            self.left.store(left - bytes, Ordering::SeqCst);
            return bytes;
        }
        // The connection is cut here, and others may pass again.
        self.is_limited.store(false, Ordering::SeqCst);
        left
    }

    /// Returns how many bytes have passed since it was asked last.
    fn passed(&self) -> usize {
        self.passed.swap(0, Ordering::SeqCst)
    }
}

#[derive(Debug, Default, Clone)]
struct Allowances {
    requests: Arc<Allowance>,
    responses: Arc<Allowance>,
}

/// Starts a proxy before a server.
async fn proxy(server: String, allowances: Allowances) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        loop {
            let (client, _) = listener.accept().await.unwrap();
            let server = TcpStream::connect(&server).await.unwrap();
            let (client_reads, client_writes) = client.into_split();
            let (server_reads, server_writes) = server.into_split();
            let (requests, responses) = (Arc::clone(&allowances.requests), Arc::clone(&allowances.responses));
            tokio::spawn(async move {
                tokio::select! {
                    () = pass(client_reads, server_writes, &requests) => (),
                    () = pass(server_reads, client_writes, &responses) => (),
                }
            });
        }
    });
    address
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, allowance: &Allowance) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        let allowed = allowance.take(length);
        if to.write_all(&buffer[..allowed]).await.is_err() || allowed < length {
            return;
        }
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_batch_whose_connection_is_cut_anywhere_is_stored_once() {
    let Some(fixture) = postgres().await else { return };
    let (server, rest) = split_url(fixture.database.url());
    let allowances = Allowances::default();
    let address = proxy(server.clone(), allowances.clone()).await;
    let url = fixture
        .database
        .url()
        .replacen(&format!("{server}{rest}"), &format!("{address}{rest}"), 1);
    let settings = StoreSettings {
        migrate: false,
        ..TestDatabase::settings()
    };
    let store = open(&url, settings).await.unwrap();
    let parent = fixture.root(&["parent"]).await;
    let first = keyed_run(&fixture.tenant, "a");
    fixture.enqueue(&first).await;
    // Statements are prepared now.
    for _ in 0..2 {
        execute_all(&*store, &writes(&fixture, &parent).await).await;
    }
    let directions = [&allowances.requests, &allowances.responses];
    let next = writes(&fixture, &parent).await;
    for direction in directions {
        direction.passed();
    }
    execute_all(&*store, &next).await;
    let lengths = directions.map(|direction| direction.passed());
    let step = if variable(EVERY_BYTE).is_some() { 1 } else { 97 };
    let expected_others = [
        &Written::Appended(true),
        &Written::Appended(false),
        &Written::waiting(),
        &Written::known(&first),
    ];
    let mut expected = counts(&fixture).await;
    for (direction, bytes) in directions.into_iter().zip(lengths) {
        assert!(bytes > 100, "{bytes}");
        for at in (0..bytes).step_by(if bytes < 1_000 { step.min(7) } else { step }) {
            let writes = writes(&fixture, &parent).await;
            direction.limit(at);
            let written = execute_all(&*store, &writes).await;
            for (write, written) in writes.iter().zip(&written) {
                write.assert_stored(&fixture, written).await;
            }
            let (sessions, others) = written.split_at(4);
            assert!(sessions.iter().all(Result::is_ok), "{sessions:?}");
            let [Err(CommitError::LeaseLost), others @ ..] = others else {
                panic!("{others:?}")
            };
            let others: Vec<_> = others.iter().flatten().collect();
            assert_eq!(others, expected_others);
            for (count, (_, added)) in expected.iter_mut().zip(ADDED) {
                *count += added;
            }
            assert_eq!(counts(&fixture).await, expected, "{at} of {bytes}");
        }
        direction.is_limited.store(false, Ordering::SeqCst);
    }
    store.close().await;
}

/// The rows that each round adds to the tables: three runs at work, of which one ends, a waiting
/// one, and three that were never in the queue.
const ADDED: [(&str, i64); 5] = [
    ("sessions", 4),
    ("runs", 7),
    ("run_queue", 3),
    ("run_journal", 1),
    ("run_events", 2),
];

async fn counts(fixture: &Fixture) -> Vec<i64> {
    let mut counts = Vec::new();
    for (table, _) in ADDED {
        counts.push(fixture.count(table).await);
    }
    counts
}

/// Makes writes of each kind. The first one is a batch of its own, and the others are the next.
async fn writes(fixture: &Fixture, parent: &Arc<Bundle>) -> [BatchedWrite; 9] {
    let [at_work, at_end] = [LeasedTestRun::new(fixture).await, LeasedTestRun::new(fixture).await];
    let lost = LeasedTestRun::new(fixture).await.lost();
    [
        BatchedWrite::commit(fixture.commit(Some(parent), &["first"])),
        BatchedWrite::commit(fixture.commit(Some(parent), &["second"])),
        BatchedWrite::commit(fixture.commit(None, &["third"])),
        BatchedWrite::end(fixture, &at_end, Some(parent), "fourth"),
        BatchedWrite::end(fixture, &lost, None, "lost"),
        BatchedWrite::append(&at_work.lease, 1),
        BatchedWrite::append(&lost.lease, 1),
        BatchedWrite::accept(queued_run(&fixture.tenant)),
        BatchedWrite::accept(keyed_run(&fixture.tenant, "a")),
    ]
}

/// Executes all at once. Repeats those whose connection is lost, as a run does.
async fn execute_all(store: &dyn Store, writes: &[BatchedWrite]) -> Vec<Result<Written, CommitError>> {
    let executing = writes.iter().map(async |write| {
        loop {
            match write.execute(store).await {
                Err(CommitError::Store(error)) if error.is_transient() => (),
                written => return written,
            }
        }
    });
    join_all(executing).await
}
