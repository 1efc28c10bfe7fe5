//! The queue of commands for workers: who takes which command, which writes a lease allows, and
//! what is removed.

use chrono::TimeDelta;
use futures_util::StreamExt as _;
use store::commands::{
    CommandKey, CommandLease, CommandTerms, CommandWakeUp, NewCommand, OutputPiece, RenewedCommand, TakenCommand,
};
use test_support::drafts::{now, tenant};
use values::clock::Timestamp;
use values::ids::{CommandId, ExecutionId, UuidV7Source, WorkerId};

use super::retention::KEEP_ALL;
use crate::fixtures::Fixture;

on_both_engines!(
    a_command_is_taken_once_and_only_its_worker_writes,
    an_expired_lease_allows_no_write,
    another_tenant_sees_nothing,
    tenants_take_turns,
    what_nobody_awaits_is_not_taken_and_swept,
    a_preferred_worker_has_a_head_start,
    both_sides_are_woken,
);

fn worker() -> WorkerId {
    WorkerId::generate(&UuidV7Source)
}

fn seconds(count: i64) -> TimeDelta {
    TimeDelta::seconds(count)
}

/// The time of all tests, since the store is told the time.
struct Queue {
    fixture: Fixture,
    now: Timestamp,
}

impl Queue {
    fn new(fixture: Fixture) -> Self {
        Self { fixture, now: now() }
    }

    fn command(&self, tenant_name: &str) -> NewCommand {
        NewCommand {
            key: CommandKey {
                tenant: tenant(tenant_name),
                command_id: CommandId::generate(&UuidV7Source),
            },
            execution_id: ExecutionId::generate(&UuidV7Source),
            preferred_worker: None,
            now: self.now,
            awaited_until: self.now + seconds(10),
            request: format!("request of {tenant_name}"),
        }
    }

    async fn insert(&self, tenant_name: &str) -> NewCommand {
        let command = self.command(tenant_name);
        self.fixture.store.command_insert(&command).await.unwrap();
        command
    }

    fn terms(&self, worker: WorkerId) -> CommandTerms {
        CommandTerms {
            worker,
            now: self.now,
            until: self.now + seconds(10),
            preferred_before: self.now,
        }
    }

    async fn take(&self, worker: WorkerId) -> Option<TakenCommand> {
        self.fixture.store.command_take(&self.terms(worker)).await.unwrap()
    }

    /// Tries all writes of a worker; returns which of them had an effect.
    async fn writes(&self, lease: &CommandLease, at: Timestamp) -> [bool; 3] {
        let store = &self.fixture.store;
        let until = at + seconds(10);
        let output = store.command_add_output(lease, &piece(9, b"forged"), at).await.unwrap();
        let renewed = store.command_renew(lease, at, until).await.unwrap();
        let ended = store
            .command_end(lease, Some(&piece(10, b"forged")), "forged", at)
            .await
            .unwrap();
        [output, renewed.is_some(), ended]
    }

    async fn rows(&self) -> [i64; 2] {
        [
            self.fixture.count("environment_commands").await,
            self.fixture.count("environment_command_output").await,
        ]
    }
}

fn piece(position: u64, bytes: &'static [u8]) -> OutputPiece {
    OutputPiece {
        position,
        bytes: bytes.into(),
    }
}

async fn a_command_is_taken_once_and_only_its_worker_writes(fixture: Fixture) {
    let queue = Queue::new(fixture);
    let store = &queue.fixture.store;
    let command = queue.insert("a").await;
    // An insert whose response was lost is repeated.
    store.command_insert(&command).await.unwrap();
    let (worker, other) = (worker(), worker());
    let taken = queue.take(worker).await.unwrap();
    assert_eq!(
        (&taken.key, taken.execution_id, &taken.request),
        (&command.key, command.execution_id, &command.request)
    );
    assert!(queue.take(worker).await.is_none() && queue.take(other).await.is_none());
    assert!(!store.command_withdraw(&command.key).await.unwrap(), "a worker has it");

    let lease = |worker| CommandLease {
        key: command.key.clone(),
        worker,
    };
    assert_eq!(queue.writes(&lease(other), queue.now).await, [false; 3]);
    let mine = lease(worker);
    let renew = || store.command_renew(&mine, queue.now, queue.now + seconds(20));
    let expected = |is_stopped| {
        Some(RenewedCommand {
            is_stopped,
            is_awaited: true,
        })
    };
    assert_eq!(renew().await.unwrap(), expected(false));
    store.command_stop(&command.key).await.unwrap();
    assert_eq!(renew().await.unwrap(), expected(true));
    for _ in 0..2 {
        // A piece whose response was lost is repeated.
        assert!(
            store
                .command_add_output(&mine, &piece(0, b"one"), queue.now)
                .await
                .unwrap()
                || queue.rows().await == [1, 1]
        );
    }
    let running = store.command_progress(&command.key, 0).await.unwrap().unwrap();
    assert_eq!(running.taken.map(|(id, _)| id), Some(worker));
    assert_eq!((running.outcome, running.output), (None, vec![piece(0, b"one")]));
    let last = piece(1, b"two");
    assert!(
        store
            .command_end(&mine, Some(&last), "outcome", queue.now)
            .await
            .unwrap()
    );
    // Nothing is written after the end.
    assert_eq!(queue.writes(&mine, queue.now).await, [false; 3]);
    let ended = store.command_progress(&command.key, 1).await.unwrap().unwrap();
    assert_eq!((ended.outcome.as_deref(), ended.output), (Some("outcome"), vec![last]));
    assert_eq!(queue.rows().await, [1, 2]);
    store.command_remove(&command.key).await.unwrap();
    assert_eq!(queue.rows().await, [0, 0]);
    assert_eq!(store.command_progress(&command.key, 0).await.unwrap(), None);
    assert_eq!(queue.writes(&mine, queue.now).await, [false; 3]);
}

async fn an_expired_lease_allows_no_write(fixture: Fixture) {
    let queue = Queue::new(fixture);
    let command = queue.insert("a").await;
    let worker = worker();
    queue.take(worker).await.unwrap();
    let lease = CommandLease {
        key: command.key.clone(),
        worker,
    };
    assert_eq!(queue.writes(&lease, queue.now + seconds(11)).await, [false; 3]);
    assert_eq!(queue.rows().await, [1, 0]);
    assert_eq!(queue.writes(&lease, queue.now + seconds(9)).await, [true; 3]);
}

async fn another_tenant_sees_nothing(fixture: Fixture) {
    let queue = Queue::new(fixture);
    let store = &queue.fixture.store;
    let command = queue.insert("a").await;
    let foreign = CommandKey {
        tenant: tenant("b"),
        ..command.key.clone()
    };
    assert_eq!(store.command_progress(&foreign, 0).await.unwrap(), None);
    assert!(!store.command_withdraw(&foreign).await.unwrap());
    assert!(!store.command_await(&foreign, queue.now).await.unwrap());
    store.command_stop(&foreign).await.unwrap();
    store.command_remove(&foreign).await.unwrap();
    let worker = worker();
    queue.take(worker).await.expect("it is as before");
    let lease = CommandLease { key: foreign, worker };
    assert_eq!(queue.writes(&lease, queue.now).await, [false; 3]);
    // The rows of a tenant go with it.
    assert_eq!(store.tenant_remove(&tenant("b"), 10, None).await.unwrap(), 0);
    assert_eq!(store.tenant_remove(&tenant("a"), 10, None).await.unwrap(), 1);
    assert_eq!(queue.rows().await, [0, 0]);
}

async fn tenants_take_turns(fixture: Fixture) {
    let queue = Queue::new(fixture);
    for _ in 0..4 {
        queue.insert("many").await;
    }
    queue.insert("few").await;
    queue.insert("one").await;
    let mut order = Vec::new();
    while let Some(taken) = queue.take(worker()).await {
        order.push(taken.key.tenant.as_str().to_owned());
    }
    assert_eq!(order, ["many", "few", "one", "many", "many", "many"]);
}

async fn what_nobody_awaits_is_not_taken_and_swept(fixture: Fixture) {
    let queue = Queue::new(fixture);
    let store = &queue.fixture.store;
    let (awaited, abandoned, withdrawn) = (
        queue.insert("a").await,
        queue.insert("a").await,
        queue.insert("a").await,
    );
    assert!(
        store
            .command_await(&awaited.key, queue.now + seconds(3_600))
            .await
            .unwrap()
    );
    assert!(
        store
            .command_await(&abandoned.key, queue.now - seconds(1))
            .await
            .unwrap()
    );
    assert!(store.command_withdraw(&withdrawn.key).await.unwrap());
    assert_eq!(queue.take(worker()).await.unwrap().key, awaited.key);
    assert!(queue.take(worker()).await.is_none());
    let planned = store.retention_plan(KEEP_ALL, queue.now).await.unwrap();
    let swept = queue.fixture.sweep(KEEP_ALL, queue.now, 10).await;
    assert_eq!((planned.commands, swept.commands), (1, 1));
    assert_eq!(queue.rows().await, [1, 0]);
    assert!(store.command_progress(&awaited.key, 0).await.unwrap().is_some());
}

async fn a_preferred_worker_has_a_head_start(fixture: Fixture) {
    let queue = Queue::new(fixture);
    let store = &queue.fixture.store;
    let preferred = worker();
    for taker in [preferred, worker()] {
        let command = NewCommand {
            preferred_worker: Some(preferred),
            ..queue.command("a")
        };
        store.command_insert(&command).await.unwrap();
        let later = CommandTerms {
            preferred_before: queue.now + seconds(1),
            ..queue.terms(taker)
        };
        if taker == preferred {
            assert_eq!(queue.take(taker).await.unwrap().key, command.key);
        } else {
            assert!(queue.take(taker).await.is_none());
            assert_eq!(store.command_take(&later).await.unwrap().unwrap().key, command.key);
        }
    }
}

async fn both_sides_are_woken(fixture: Fixture) {
    let queue = Queue::new(fixture);
    let store = &queue.fixture.store;
    let mut wake_ups = store.command_wake_ups();
    // Other wake-ups may come at any time.
    let mut until = async |expected: CommandWakeUp| {
        while wake_ups.next().await.expect("the stream has an end") != expected {}
    };
    until(CommandWakeUp::Missed).await;
    let command = queue.insert("a").await;
    until(CommandWakeUp::Waiting).await;
    let worker = worker();
    queue.take(worker).await.unwrap();
    store.command_stop(&command.key).await.unwrap();
    until(CommandWakeUp::Stopped(command.key.command_id)).await;
    let lease = CommandLease {
        key: command.key.clone(),
        worker,
    };
    assert!(store.command_end(&lease, None, "outcome", queue.now).await.unwrap());
    until(CommandWakeUp::Progressed(command.key.command_id)).await;
}
