//! Events of replicas that share a server: all read them without gaps, also after the server lost
//! data and after another replica took a run over.

use std::sync::Arc;
use std::time::Duration;

use agent::record::{RunStatus, event_weight};
use board::{Board, BoardSettings, LiveRun, RedisSettings};
use tasks::supervision::Supervisor;
use test_support::live_run::new_run;
use test_support::redis_server::{EXPIRY, PrivateServer, SLACK, TIMEOUT, board, settings};
use tokio::time::timeout;
use values::tenant::TenantId;

use crate::{append, close, ended, event, new_tenant, open, opened, private_replicas, read, terminal, until};

/// The next attempt at a run.
fn next_attempt(run: &LiveRun) -> Arc<LiveRun> {
    Arc::new(run.clone().leased(run.fence + 1))
}

async fn until_read(board: &Board, tenant: &TenantId, run: &LiveRun, wanted: &str) {
    let all = async || {
        let events = board.event_read(tenant, run.summary.run_id, 0, 1000).await;
        events.map_or_else(|_| "away".to_owned(), |events| crate::show(&events))
    };
    until(wanted.to_owned(), all).await;
}

/// Follows a run by its changes alone until its terminal event.
async fn follow(board: &Board, tenant: &TenantId, run: &LiveRun) -> String {
    let mut shown = Vec::new();
    let mut after = 0;
    loop {
        let change = board.run_change(run.summary.run_id);
        let events = board.event_read(tenant, run.summary.run_id, after, 7).await.unwrap();
        let Some(last) = events.last() else {
            change.await;
            continue;
        };
        after = last.sequence;
        shown.push(crate::show(&events));
        if last.payload.is_terminal() {
            return shown.join(" ");
        }
    }
}

#[tokio::test]
async fn another_replica_follows_a_run_by_its_changes() {
    let Some((_server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = new_run(None);
    open(&here, &tenant, &run, false).await.unwrap();
    let emit = async {
        for sequence in 1..=100 {
            append(&here, &tenant, &run, sequence..=sequence, "a");
            if sequence % 10 == 0 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        here.event_append(&tenant, terminal(&run, 101));
    };
    let followed = timeout(Duration::from_secs(20), follow(&there, &tenant, &run));
    let ((), followed) = tokio::join!(emit, followed);
    let wanted: Vec<_> = (1..=100).map(|sequence| format!("{sequence}a")).collect();
    assert_eq!(followed.unwrap(), format!("{} 101.", wanted.join(" ")));
    assert_eq!(there.event_last(&tenant, run.summary.run_id).await.unwrap(), 101);
    let last = there.event_read(&tenant, run.summary.run_id, 100, 10).await.unwrap();
    assert_eq!(last, [terminal_of(&here, &tenant, &run).await]);
    close([&here, &there]).await;
}

async fn terminal_of(board: &Board, tenant: &TenantId, run: &LiveRun) -> Arc<agent::record::RunEvent> {
    let events = board.event_read(tenant, run.summary.run_id, 100, 1).await.unwrap();
    Arc::clone(&events[0])
}

#[tokio::test]
async fn another_replica_is_notified_of_the_state_of_a_run() {
    let Some((_server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = new_run(None);
    open(&here, &tenant, &run, false).await.unwrap();
    for status in [RunStatus::Waiting, RunStatus::Completed] {
        let changed = async {
            loop {
                let change = there.run_change(run.summary.run_id);
                let seen = crate::lookup(&there, &tenant, &run).await;
                if seen.is_some_and(|seen| seen.summary.status == status) {
                    return;
                }
                change.await;
            }
        };
        let emit = async {
            tokio::task::yield_now().await;
            here.run_update(&tenant, ended(&run, status));
        };
        let ((), changed) = tokio::join!(emit, timeout(Duration::from_secs(20), changed));
        assert!(changed.is_ok(), "{status}");
    }
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_replica_that_takes_over_goes_on_with_the_stream() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = opened(&here, &tenant, 3).await;
    until_read(&there, &tenant, &run, "1a 2a 3a").await;
    here.run_release(&tenant, run.summary.run_id, run.fence);
    // What it has shared is read until the next attempt emits more.
    assert_eq!(read(&here, &tenant, &run, 0).await, "1a 2a 3a");
    let next = next_attempt(&run);
    open(&there, &tenant, &next, false).await.unwrap();
    append(&there, &tenant, &run, 4..=5, "b");
    there.event_append(&tenant, terminal(&run, 6));
    let third = board(&server.url(), EXPIRY).await;
    for replica in [&here, &there, &third] {
        until("4b 5b 6.".to_owned(), async || read(replica, &tenant, &run, 3).await).await;
        assert_eq!(replica.event_last(&tenant, run.summary.run_id).await.unwrap(), 6);
    }
    third.close().await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn readers_get_events_of_a_queued_run_that_others_would_find() {
    let Some((mut server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = next_attempt(&new_run(None));
    let run_id = run.summary.run_id;
    let read_here = async || read(&here, &tenant, &run, 0).await;
    open(&here, &tenant, &run, false).await.unwrap();
    append(&here, &tenant, &run, 1..=2, "a");
    until("1a 2a".to_owned(), read_here).await;
    assert_eq!(read(&there, &tenant, &run, 0).await, "1a 2a");

    server.stop();
    append(&here, &tenant, &run, 3..=6, "b");
    assert_eq!(read_here().await, "1a 2a");
    // The next one is emitted here, so no other source is asked for it.
    assert_eq!(here.event_read_here(&tenant, run_id, 2, 10), Some(Vec::new()));
    assert_eq!(here.event_read_here(&tenant, run_id, 7, 10), None);
    let change = here.run_change(run_id);
    here.event_persisted(run_id, 4);
    change.await;
    assert_eq!(read_here().await, "1a 2a 3b 4b");

    server.restart();
    until("1a 2a 3b 4b 5b 6b".to_owned(), read_here).await;
    server.stop();
    append(&here, &tenant, &run, 7..=7, "c");
    assert_eq!(read(&here, &tenant, &run, 6).await, "");
    // The end is emitted when the store has it and all before it.
    here.event_append(&tenant, terminal(&run, 8));
    assert_eq!(read(&here, &tenant, &run, 6).await, "7c 8.");
    close([&here, &there]).await;
}

#[tokio::test]
async fn an_attempt_that_was_taken_over_shares_nothing_more() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let third = board(&server.url(), EXPIRY).await;
    let run = opened(&here, &tenant, 5).await;
    until_read(&third, &tenant, &run, "1a 2a 3a 4a 5a").await;
    // The next attempt knows of three events only.
    open(&there, &tenant, &next_attempt(&run), false).await.unwrap();
    append(&there, &tenant, &run, 4..=5, "b");
    let read_on = async |replica: &Board| read(replica, &tenant, &run, 3).await;
    until("4b 5b".to_owned(), async || read_on(&third).await).await;
    append(&here, &tenant, &run, 6..=7, "a");
    // Once the server has refused that, the process reads the events of the next attempt.
    until("4b 5b".to_owned(), async || read_on(&here).await).await;
    append(&there, &tenant, &run, 6..=6, "b");
    for replica in [&here, &there, &third] {
        until("4b 5b 6b".to_owned(), async || read_on(replica).await).await;
    }
    third.close().await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn events_emitted_during_an_outage_are_read_after_it() {
    let Some((mut server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let (live, over, early) = (new_run(None), new_run(None), new_run(None));
    for run in [&live, &over, &early] {
        open(&here, &tenant, run, false).await.unwrap();
        append(&here, &tenant, run, 1..=2, "a");
        until_read(&there, &tenant, run, "1a 2a").await;
    }
    here.event_append(&tenant, terminal(&early, 3));
    here.run_close(&tenant, early.summary.run_id);
    until_read(&there, &tenant, &early, "1a 2a 3.").await;

    server.stop();
    append(&here, &tenant, &live, 3..=4, "b");
    here.event_append(&tenant, terminal(&over, 3));
    here.run_close(&tenant, over.summary.run_id);
    let read_there = there.event_read(&tenant, live.summary.run_id, 2, 10);
    assert!(timeout(TIMEOUT + SLACK, read_there).await.unwrap().is_err());
    assert!(there.event_last(&tenant, live.summary.run_id).await.is_err());
    assert_eq!(read(&here, &tenant, &live, 0).await, "1a 2a 3b 4b");

    // It comes back empty.
    server.restart();
    for replica in [&here, &there] {
        until_read(replica, &tenant, &live, "1a 2a 3b 4b").await;
        until_read(replica, &tenant, &over, "1a 2a 3.").await;
        until_read(replica, &tenant, &early, "1a 2a 3.").await;
    }
    append(&here, &tenant, &live, 5..=5, "c");
    until_read(&there, &tenant, &live, "1a 2a 3b 4b 5c").await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_server_that_hung_goes_on_with_what_it_has() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = opened(&here, &tenant, 2).await;
    until_read(&there, &tenant, &run, "1a 2a").await;
    server.signal("STOP");
    append(&here, &tenant, &run, 3..=4, "b");
    let read_there = there.event_read(&tenant, run.summary.run_id, 2, 10);
    assert!(timeout(TIMEOUT + SLACK, read_there).await.unwrap().is_err());
    server.signal("CONT");
    until_read(&there, &tenant, &run, "1a 2a 3b 4b").await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn events_that_an_emptied_server_lost_are_sent_again() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = opened(&here, &tenant, 3).await;
    until_read(&there, &tenant, &run, "1a 2a 3a").await;
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    append(&here, &tenant, &run, 4..=4, "b");
    until_read(&there, &tenant, &run, "1a 2a 3a 4b").await;
    // It lost its newest events only, as a server that takes over from another may.
    let key = format!("agent-runtime:{tenant}:events:{}", run.summary.run_id);
    assert_eq!(server.command(&["XDEL", &key, "3-0", "4-0"]), ":2");
    assert_eq!(server.command(&["XSETID", &key, "2-0"]), "+OK");
    append(&here, &tenant, &run, 5..=5, "c");
    until_read(&there, &tenant, &run, "1a 2a 3a 4b 5c").await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_silent_run_is_sent_again_as_well() {
    let Some((server, here, there, tenant)) = private_replicas(Duration::from_secs(12)).await else {
        return;
    };
    let run = opened(&here, &tenant, 3).await;
    until_read(&there, &tenant, &run, "1a 2a 3a").await;
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    until_read(&there, &tenant, &run, "1a 2a 3a").await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_run_that_emitted_more_than_is_retained_goes_on_without_its_beginning() {
    let Some(mut server) = PrivateServer::start() else {
        return;
    };
    let small = RedisSettings {
        board: BoardSettings {
            max_run_event_bytes: 5 * event_weight(&event(&new_run(None), 1, "a").payload),
            ..BoardSettings::default()
        },
        ..settings(EXPIRY)
    };
    let here = Board::open(&server.url(), small, &Supervisor::default()).await.unwrap();
    let there = board(&server.url(), EXPIRY).await;
    let tenant = new_tenant();
    let run = opened(&here, &tenant, 2).await;
    until_read(&there, &tenant, &run, "1a 2a").await;
    // What this process has forgotten the server still has.
    for sequence in 3..=20 {
        append(&here, &tenant, &run, sequence..=sequence, "a");
        until(sequence, async || {
            there.event_last(&tenant, run.summary.run_id).await.unwrap()
        })
        .await;
    }
    assert_eq!(read(&here, &tenant, &run, 16).await, "17a 18a 19a 20a");
    assert!(read(&here, &tenant, &run, 0).await.starts_with("1a 2a 3a 4a"));

    server.stop();
    append(&here, &tenant, &run, 21..=40, "b");
    server.restart();
    until("37b 38b 39b 40b".to_owned(), async || {
        let events = there.event_read(&tenant, run.summary.run_id, 36, 100).await;
        events.map(|events| crate::show(&events)).unwrap_or_default()
    })
    .await;
    for (after, wanted) in [(0, ""), (20, ""), (34, ""), (35, "36b 37b 38b 39b 40b")] {
        assert_eq!(read(&there, &tenant, &run, after).await, wanted, "after {after}");
    }
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_reader_stops_before_an_event_that_is_not_shared() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = opened(&here, &tenant, 2).await;
    here.event_append(&tenant, event(&run, 3, &"x".repeat(2 << 20)));
    append(&here, &tenant, &run, 4..=5, "a");
    until(5, async || there.event_last(&tenant, run.summary.run_id).await.unwrap()).await;
    assert_eq!(read(&here, &tenant, &run, 0).await, "1a 2a 3xxxx 4a 5a");
    for (after, wanted) in [(0, "1a 2a"), (2, ""), (3, "4a 5a")] {
        assert_eq!(read(&there, &tenant, &run, after).await, wanted);
    }

    // One that a newer version wrote.
    let other = new_run(None);
    let key = format!("agent-runtime:{tenant}:events:{}", other.summary.run_id);
    open(&here, &tenant, &other, false).await.unwrap();
    append(&here, &tenant, &other, 1..=1, "a");
    until_read(&there, &tenant, &other, "1a").await;
    server.command(&[
        "XADD",
        &key,
        "2-0",
        "fence",
        "1",
        "event",
        r#"{"version":2,"value":{}}"#,
    ]);
    assert_eq!(read(&there, &tenant, &other, 0).await, "1a");
    close([&here, &there]).await;
}

#[tokio::test]
async fn streams_of_ended_runs_expire_and_those_of_live_runs_do_not() {
    let Some(server) = PrivateServer::start() else { return };
    let settings = RedisSettings {
        board: BoardSettings {
            event_retention: Duration::from_secs(10),
            ..BoardSettings::default()
        },
        ..settings(Duration::from_secs(3))
    };
    let here = Board::open(&server.url(), settings, &Supervisor::default())
        .await
        .unwrap();
    let (tenant, live, over) = (new_tenant(), new_run(None), new_run(None));
    for run in [&live, &over] {
        open(&here, &tenant, run, false).await.unwrap();
        append(&here, &tenant, run, 1..=1, "a");
    }
    here.event_append(&tenant, terminal(&over, 2));
    here.run_close(&tenant, over.summary.run_id);
    let key = |run: &LiveRun| format!("agent-runtime:{tenant}:events:{}", run.summary.run_id);
    until(":2".to_owned(), async || server.command(&["XLEN", &key(&over)])).await;
    until(":0".to_owned(), async || server.command(&["EXISTS", &key(&over)])).await;
    // If it expires while the machine stands still, the next refresh sends it again.
    until(":1".to_owned(), async || server.command(&["EXISTS", &key(&live)])).await;
    here.close().await;
}
