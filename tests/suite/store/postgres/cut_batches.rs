//! A batch whose connection is cut, at any byte of the request or of the response.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use agent_runtime::session::Bundle;
use agent_runtime::store::{Commit, CommitError, Store, StoreSettings, open};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::store::fixtures::Fixture;
use crate::support::databases::{Engine, TestDatabase, variable};
use crate::support::proxy::split_url;

/// If this is set, the test cuts at every byte, which takes a minute or two.
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
    let Some(fixture) = Fixture::new(Engine::Postgres).await else {
        return;
    };
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
    // The first one is a batch of its own, and the others are the next.
    let commits = || {
        [
            fixture.commit(Some(&parent), &["first"]),
            fixture.commit(Some(&parent), &["second"]),
            fixture.commit(None, &["third"]),
        ]
    };
    // Statements are prepared now.
    commit_all(&*store, &commits()).await;
    commit_all(&*store, &commits()).await;
    let directions = [&allowances.requests, &allowances.responses];
    for direction in directions {
        direction.passed();
    }
    commit_all(&*store, &commits()).await;
    let step = if variable(EVERY_BYTE).is_some() { 1 } else { 97 };
    let mut expected = fixture.count("sessions").await;
    let lengths = directions.map(|direction| direction.passed());
    for (direction, bytes) in directions.into_iter().zip(lengths) {
        assert!(bytes > 100, "{bytes}");
        for at in (0..bytes).step_by(if bytes < 1_000 { step.min(7) } else { step }) {
            let commits = commits();
            direction.limit(at);
            let stored = commit_all(&*store, &commits).await;
            for bundle in stored {
                assert_eq!(fixture.load(bundle.head.session_id).await, bundle, "{at} of {bytes}");
            }
            expected += 3;
            assert_eq!(fixture.count("sessions").await, expected, "{at} of {bytes}");
            assert_eq!(fixture.count("runs").await, expected, "{at} of {bytes}");
        }
        direction.is_limited.store(false, Ordering::SeqCst);
    }
    store.close().await;
}

/// Commits all at once. Repeats those whose connection is lost, as a run does.
async fn commit_all(store: &dyn Store, commits: &[Commit]) -> Vec<Bundle> {
    let committing = commits.iter().map(async |commit| {
        loop {
            match store.session_commit(commit).await {
                Ok(committed) => return committed.session,
                Err(CommitError::Store(error)) if error.is_transient() => (),
                Err(error) => panic!("{error:?}"),
            }
        }
    });
    join_all(committing).await
}
