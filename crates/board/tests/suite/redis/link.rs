//! A server that is stopped, hangs, comes back empty or becomes a replica: own runs are always
//! seen, and nobody waits long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use board::Board;
use test_support::live_run::new_run;
use test_support::logs::CapturedLog;
use test_support::redis_server::{EXPIRY, PrivateServer, SLACK, TIMEOUT, board};

use crate::{close, listed, lookup, new_session_id, new_tenant, open, private_replicas, until, with_step};

/// Fails if the future takes longer than the time limit of a request and the slack of a busy
/// machine.
async fn promptly<T>(future: impl Future<Output = T>) -> T {
    let begun = Instant::now();
    let value = future.await;
    assert!(begun.elapsed() < TIMEOUT + SLACK, "{:?}", begun.elapsed());
    value
}

/// Shows that a board works alone as the only board of a service does.
async fn check_local_view(board: &Board) {
    let (tenant, base) = (new_tenant(), new_session_id());
    let (run, rival) = (new_run(Some(base)), new_run(Some(base)));
    assert_eq!(promptly(open(board, &tenant, &run, true)).await, Ok(()));
    let run = with_step(&run, "one");
    board.run_update(&tenant, Arc::clone(&run));
    assert_eq!(
        promptly(open(board, &tenant, &rival, true)).await,
        Err(run.summary.run_id)
    );
    assert_eq!(promptly(lookup(board, &tenant, &run)).await, Some(Arc::clone(&run)));
    assert_eq!(promptly(lookup(board, &tenant, &rival)).await, None);
    let session_id = rival.summary.session_id;
    let reserved = promptly(board.run_lookup_by_session(&tenant, session_id)).await;
    assert_eq!(reserved, None);
    assert_eq!(promptly(board.run_list(&tenant)).await, [Arc::clone(&run)]);
    board.run_close(&tenant, run.summary.run_id);
    assert_eq!(promptly(listed(board, &tenant)).await, []);
}

#[tokio::test]
async fn a_stopped_server_hides_other_replicas_until_it_is_back() {
    // A replica that asks for nothing meanwhile learns of the outage when it refreshes its runs
    // next.
    let Some((mut server, here, there, tenant)) = private_replicas(Duration::from_secs(12)).await else {
        return;
    };
    let (own, others, over) = (new_run(None), new_run(None), new_run(None));
    for (board, run) in [(&here, &own), (&here, &over), (&there, &others)] {
        assert_eq!(open(board, &tenant, run, false).await, Ok(()));
    }

    server.stop();
    assert_eq!(promptly(lookup(&here, &tenant, &others)).await, None);
    assert_eq!(lookup(&here, &tenant, &own).await, Some(Arc::clone(&own)));
    check_local_view(&here).await;
    let during = new_run(None);
    assert_eq!(promptly(open(&here, &tenant, &during, false)).await, Ok(()));
    let own = with_step(&own, "one");
    here.run_update(&tenant, Arc::clone(&own));
    here.run_close(&tenant, over.summary.run_id);

    server.restart();
    let all = vec![during.summary.run_id, others.summary.run_id, own.summary.run_id];
    until(all.clone(), async || listed(&here, &tenant).await).await;
    until(all, async || listed(&there, &tenant).await).await;
    assert_eq!(lookup(&there, &tenant, &own).await, Some(own));
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_run_that_ends_during_an_outage_is_taken_off_after_it() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let run = new_run(None);
    assert_eq!(open(&here, &tenant, &run, false).await, Ok(()));
    // A server that hangs keeps what it knows.
    server.signal("STOP");
    assert_eq!(promptly(listed(&here, &new_tenant())).await, []);
    here.run_close(&tenant, run.summary.run_id);
    check_local_view(&here).await;
    assert_eq!(promptly(lookup(&here, &tenant, &run)).await, None);

    server.signal("CONT");
    until(vec![], async || listed(&there, &tenant).await).await;
    let next = new_run(None);
    assert_eq!(open(&here, &tenant, &next, false).await, Ok(()));
    until(vec![next.summary.run_id], async || listed(&there, &tenant).await).await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_run_that_ends_during_an_outage_is_taken_off_however_much_else_waits() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let (base, other) = (new_session_id(), new_tenant());
    let run = new_run(Some(base));
    assert_eq!(open(&here, &tenant, &run, true).await, Ok(()));
    server.signal("STOP");
    assert_eq!(promptly(listed(&here, &tenant)).await, [run.summary.run_id]);
    for _ in 0..10_000 {
        assert_eq!(open(&here, &other, &new_run(None), false).await, Ok(()));
    }
    here.run_close(&tenant, run.summary.run_id);

    server.signal("CONT");
    until(vec![], async || listed(&there, &tenant).await).await;
    for replica in [&here, &there] {
        let next = new_run(Some(base));
        assert_eq!(open(replica, &tenant, &next, true).await, Ok(()));
        replica.run_close(&tenant, next.summary.run_id);
        until(vec![], async || listed(replica, &tenant).await).await;
    }
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_board_opens_while_its_server_is_away() {
    let Some(mut server) = PrivateServer::start() else {
        return;
    };
    server.stop();
    let here = promptly(board(&server.url(), EXPIRY)).await;
    check_local_view(&here).await;
    let (tenant, run) = (new_tenant(), new_run(None));
    assert_eq!(promptly(open(&here, &tenant, &run, true)).await, Ok(()));

    server.restart();
    let there = board(&server.url(), EXPIRY).await;
    until(Some(Arc::clone(&run)), async || lookup(&there, &tenant, &run).await).await;
    server.stop();
    promptly(here.close()).await;
    promptly(there.close()).await;
}

#[tokio::test]
async fn an_emptied_server_is_filled_again() {
    let Some((server, here, there, tenant)) = private_replicas(Duration::from_secs(12)).await else {
        return;
    };
    let run = with_step(&new_run(Some(new_session_id())), "one");
    assert_eq!(open(&here, &tenant, &run, true).await, Ok(()));
    assert_eq!(server.command(&["FLUSHALL"]), "+OK");
    until(Some(Arc::clone(&run)), async || lookup(&there, &tenant, &run).await).await;
    let rival = new_run(run.summary.base_session_id);
    assert_eq!(open(&there, &tenant, &rival, true).await, Err(run.summary.run_id));
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_server_that_refuses_writes_is_an_outage() {
    let Some(server) = PrivateServer::start() else { return };
    let here = board(&server.url(), EXPIRY).await;
    assert_eq!(server.command(&["CONFIG", "SET", "maxmemory", "1"]), "+OK");
    check_local_view(&here).await;
    let (tenant, run) = (new_tenant(), new_run(None));
    assert_eq!(promptly(open(&here, &tenant, &run, true)).await, Ok(()));
    assert_eq!(server.command(&["CONFIG", "SET", "maxmemory", "0"]), "+OK");
    let there = board(&server.url(), EXPIRY).await;
    until(Some(Arc::clone(&run)), async || lookup(&there, &tenant, &run).await).await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_server_that_becomes_a_replica_is_an_outage_also_for_a_process_without_runs() {
    let Some(server) = PrivateServer::start() else { return };
    // The test's runtime has one thread, so the board's task logs here too.
    let (log, _listening) = CapturedLog::listening(tracing::Level::INFO);
    let here = board(&server.url(), Duration::from_secs(12)).await;
    assert_eq!(server.command(&["REPLICAOF", "127.0.0.1", "1"]), "+OK");
    until(1, async || count(&log, "WARN")).await;
    check_local_view(&here).await;
    let (tenant, run) = (new_tenant(), new_run(None));
    assert_eq!(promptly(open(&here, &tenant, &run, true)).await, Ok(()));
    assert_eq!(count(&log, "INFO"), 0, "{}", log.text());

    assert_eq!(server.command(&["REPLICAOF", "NO", "ONE"]), "+OK");
    let there = board(&server.url(), EXPIRY).await;
    until(Some(Arc::clone(&run)), async || lookup(&there, &tenant, &run).await).await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_server_without_the_tls_that_is_asked_for_is_an_outage() {
    let Some(server) = PrivateServer::start() else { return };
    let here = board(&server.url().replace("redis:", "rediss:"), EXPIRY).await;
    check_local_view(&here).await;
    assert_eq!(server.command(&["DBSIZE"]), ":0");
    promptly(here.close()).await;
}

#[tokio::test]
async fn an_outage_is_logged_once() {
    let Some(mut server) = PrivateServer::start() else {
        return;
    };
    // The test's runtime has one thread, so the board's task logs here too.
    let (log, _listening) = CapturedLog::listening(tracing::Level::INFO);
    let here = board(&server.url(), EXPIRY).await;
    for outage in 1..=2 {
        server.stop();
        for _ in 0..20 {
            check_local_view(&here).await;
        }
        until(outage, async || count(&log, "WARN")).await;
        server.restart();
        until(outage, async || count(&log, "INFO")).await;
    }
    assert_eq!(count(&log, "WARN"), 2, "{}", log.text());
    here.close().await;
}

/// Counts the board's messages of a level.
fn count(log: &CapturedLog, level: &str) -> usize {
    let text = log.text();
    let of_board = text.lines().filter(|line| line.contains("shared board"));
    of_board.filter(|line| line.contains(level)).count()
}
