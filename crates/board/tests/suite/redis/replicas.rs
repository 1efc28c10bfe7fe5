//! Two boards on one server are two replicas of the service.

use std::sync::Arc;
use std::time::Duration;

use agent::record::RunStatus;
use board::{Board, RedisSettings};
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tasks::supervision::Supervisor;
use test_support::live_run::new_run;
use test_support::redis_server::{EXPIRY, PrivateServer, board};
use values::ids::RunId;

use crate::{
    boards, close, ended, listed, lookup, new_session_id, new_tenant, open, private_replicas, replicas, until,
    with_step,
};

/// Short, and still long enough for a busy machine to refresh its runs three times.
const SHORT_EXPIRY: Duration = Duration::from_secs(4);

#[tokio::test]
async fn a_replica_sees_the_runs_of_another() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let run = new_run(None);
    let (run_id, session_id) = (run.summary.run_id, run.summary.session_id);
    assert_eq!(open(&here, &tenant, &run, false).await, Ok(()));
    // What has begun is seen at once.
    assert_eq!(lookup(&there, &tenant, &run).await, Some(Arc::clone(&run)));
    let reserved = there.run_lookup_by_session(&tenant, session_id).await;
    assert_eq!(reserved, Some(run_id));
    assert_eq!(there.run_list(&tenant).await, [Arc::clone(&run)]);

    let stepped = with_step(&run, "one");
    here.run_update(&tenant, Arc::clone(&stepped));
    until(Some(Arc::clone(&stepped)), async || lookup(&there, &tenant, &run).await).await;
    let ended = ended(&stepped, RunStatus::Failed);
    here.run_update(&tenant, Arc::clone(&ended));
    until(Some(Arc::clone(&ended)), async || lookup(&there, &tenant, &run).await).await;
    // Lists don't read payloads.
    let summaries = there.run_list(&tenant).await;
    assert_eq!(summaries[0].summary, ended.summary);

    here.run_close(&tenant, run_id);
    until(None, async || lookup(&there, &tenant, &run).await).await;
    let reserved = there.run_lookup_by_session(&tenant, session_id).await;
    assert_eq!(reserved, None);
    assert_eq!(listed(&there, &tenant).await, []);
    close([&here, &there]).await;
}

#[tokio::test]
async fn lists_merge_the_runs_of_all_replicas() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let runs: Vec<_> = (0..6).map(|_| new_run(None)).collect();
    for (index, run) in runs.iter().enumerate() {
        let board = if index % 2 == 0 { &here } else { &there };
        assert_eq!(open(board, &tenant, run, false).await, Ok(()));
    }
    let newest_first: Vec<RunId> = runs.iter().rev().map(|run| run.summary.run_id).collect();
    assert_eq!(listed(&here, &tenant).await, newest_first);
    assert_eq!(listed(&there, &tenant).await, newest_first);
    close([&here, &there]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_of_many_exclusive_runs_of_two_replicas_wins() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let boards = [Arc::new(here), Arc::new(there)];
    for _ in 0..5 {
        let base = new_session_id();
        let racers = (0..40).map(|index| {
            let (board, tenant, run) = (Arc::clone(&boards[index % 2]), tenant.clone(), new_run(Some(base)));
            tokio::spawn(async move { (open(&board, &tenant, &run, true).await, run.summary.run_id) })
        });
        let opened: Vec<_> = join_all(racers).await.into_iter().map(Result::unwrap).collect();
        let winners: Vec<RunId> = opened
            .iter()
            .filter(|(won, _)| won.is_ok())
            .map(|(_, id)| *id)
            .collect();
        assert_eq!(winners.len(), 1);
        assert!(opened.iter().all(|(won, _)| won.is_ok() || *won == Err(winners[0])));
    }
}

#[tokio::test]
async fn an_exclusive_run_yields_to_a_forking_one_of_another_replica() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let base = new_session_id();
    let (first, second) = (new_run(Some(base)), new_run(Some(base)));
    assert_eq!(open(&here, &tenant, &first, false).await, Ok(()));
    assert_eq!(open(&there, &tenant, &second, true).await, Err(first.summary.run_id));
    here.run_close(&tenant, first.summary.run_id);
    until(None, async || lookup(&there, &tenant, &first).await).await;
    assert_eq!(open(&there, &tenant, &second, true).await, Ok(()));
    close([&here, &there]).await;
}

#[tokio::test]
async fn an_exclusive_run_yields_to_a_rival_elsewhere_beside_an_own_run_that_has_ended() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let base = new_session_id();
    let (own, rival) = (new_run(Some(base)), new_run(Some(base)));
    assert_eq!(open(&here, &tenant, &own, false).await, Ok(()));
    assert_eq!(open(&there, &tenant, &rival, false).await, Ok(()));
    // The server does not know yet that it has ended, and lists it first.
    here.run_close(&tenant, own.summary.run_id);
    let opened = open(&here, &tenant, &new_run(Some(base)), true).await;
    assert_eq!(opened, Err(rival.summary.run_id));
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_run_whose_caller_left_before_it_began_leaves_nothing() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let base = new_session_id();
    for polls in 0..3 {
        let run = new_run(Some(base));
        {
            let mut opening = Box::pin(here.run_open(&tenant, Arc::clone(&run), true));
            for _ in 0..polls {
                // The answer takes a round trip; giving way lets the question go out.
                let _ = (&mut opening).now_or_never();
                tokio::task::yield_now().await;
            }
        }
        until(None, async || lookup(&there, &tenant, &run).await).await;
        let next = new_run(Some(base));
        assert_eq!(open(&here, &tenant, &next, true).await, Ok(()), "{polls}");
        until(vec![next.summary.run_id], async || listed(&there, &tenant).await).await;
        here.run_close(&tenant, next.summary.run_id);
        until(vec![], async || listed(&there, &tenant).await).await;
    }
    close([&here, &there]).await;
}

#[tokio::test]
async fn closing_a_board_writes_what_is_left() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let (closed, left) = (new_run(None), new_run(None));
    assert_eq!(open(&here, &tenant, &closed, false).await, Ok(()));
    assert_eq!(open(&here, &tenant, &left, false).await, Ok(()));
    let left = with_step(&left, "last");
    here.run_update(&tenant, Arc::clone(&left));
    here.run_close(&tenant, closed.summary.run_id);
    here.close().await;
    assert_eq!(lookup(&there, &tenant, &closed).await, None);
    assert_eq!(lookup(&there, &tenant, &left).await, Some(left));
    there.close().await;
}

#[tokio::test]
async fn the_runs_of_a_dead_replica_are_forgotten() {
    let Some(url) = test_support::redis_server::shared_url() else {
        return;
    };
    let [dead, alive] = boards(&url, SHORT_EXPIRY).await;
    let (tenant, base) = (new_tenant(), new_session_id());
    let (lost, retained) = (new_run(Some(base)), new_run(None));
    assert_eq!(open(&dead, &tenant, &lost, true).await, Ok(()));
    assert_eq!(open(&alive, &tenant, &retained, true).await, Ok(()));
    // Only what is refreshed outlives several expiries.
    tokio::time::sleep(SHORT_EXPIRY * 2).await;
    let both = vec![retained.summary.run_id, lost.summary.run_id];
    let watcher = board(&url, SHORT_EXPIRY).await;
    // What expires while the machine stands still comes back with the next refresh.
    until(both, async || listed(&watcher, &tenant).await).await;
    until(Err(lost.summary.run_id), async || {
        let rival = new_run(Some(base));
        let opened = open(&alive, &tenant, &rival, true).await;
        if opened.is_ok() {
            alive.run_close(&tenant, rival.summary.run_id);
        }
        opened
    })
    .await;

    dead.close().await;
    let heir = new_run(Some(base));
    until(Ok(()), async || open(&alive, &tenant, &heir, true).await).await;
    let session_id = lost.summary.session_id;
    until(None, async || watcher.run_lookup_by_session(&tenant, session_id).await).await;
    assert_eq!(lookup(&watcher, &tenant, &lost).await, None);
    let rest = vec![heir.summary.run_id, retained.summary.run_id];
    until(rest, async || listed(&watcher, &tenant).await).await;
    alive.close().await;
    watcher.close().await;
}

#[tokio::test]
async fn every_key_of_a_tenant_expires_and_names_the_tenant() {
    let Some(server) = PrivateServer::start() else { return };
    let board = board(&server.url(), EXPIRY).await;
    let tenant = new_tenant();
    assert_eq!(
        open(&board, &tenant, &new_run(Some(new_session_id())), true).await,
        Ok(())
    );
    let script = "local bad = 0
        for _, key in ipairs(redis.call('KEYS', '*')) do
          local expiry = redis.call('PTTL', key)
          if expiry <= 0 or expiry > 30000 or not string.find(key, ARGV[1], 1, true) then bad = bad + 1 end
        end
        return {ok = #redis.call('KEYS', '*') .. ' keys, ' .. bad .. ' bad'}";
    let found = server.command(&["EVAL", script, "0", &format!("agent-runtime:{tenant}:")]);
    assert_eq!(found, "+4 keys, 0 bad");
    board.close().await;
}

#[tokio::test]
async fn runs_that_a_newer_or_broken_replica_wrote_are_skipped() {
    let Some((server, here, there, tenant)) = private_replicas(EXPIRY).await else {
        return;
    };
    let runs: Vec<_> = (0..4).map(|_| with_step(&new_run(None), "one")).collect();
    for run in &runs {
        assert_eq!(open(&here, &tenant, run, false).await, Ok(()));
    }
    let key = |index: usize| format!("agent-runtime:{tenant}:run:{}", runs[index].summary.run_id);
    server.command(&["HSET", &key(0), "summary", r#"{"version":2,"value":{"new":1}}"#]);
    server.command(&["HSET", &key(1), "summary", "\u{0} no JSON"]);
    server.command(&["HSET", &key(2), "work", r#"{"version":2,"value":{"new":1}}"#]);
    for unreadable in &runs[..2] {
        assert_eq!(lookup(&there, &tenant, unreadable).await, None);
    }
    let without_steps = lookup(&there, &tenant, &runs[2]).await.unwrap();
    assert_eq!(without_steps.summary, runs[2].summary);
    assert_eq!(without_steps.steps, []);
    assert_eq!(lookup(&there, &tenant, &runs[3]).await, Some(Arc::clone(&runs[3])));
    assert_eq!(
        listed(&there, &tenant).await,
        [runs[3].summary.run_id, runs[2].summary.run_id]
    );
    close([&here, &there]).await;
}

#[tokio::test]
async fn steps_of_any_size_leave_the_board_working() {
    let Some((here, there, tenant)) = replicas().await else {
        return;
    };
    let large = with_step(&new_run(None), &"x".repeat(8 << 20));
    let small = with_step(&new_run(None), "one");
    for run in [&large, &small] {
        assert_eq!(open(&here, &tenant, run, false).await, Ok(()));
    }
    assert_eq!(lookup(&here, &tenant, &large).await, Some(Arc::clone(&large)));
    let seen = lookup(&there, &tenant, &large).await.unwrap();
    assert_eq!(seen.summary, large.summary);
    assert_eq!(seen.steps, []);
    assert_eq!(lookup(&there, &tenant, &small).await, Some(Arc::clone(&small)));
    // One that grows too large is still shown, as its summary.
    let grown = with_step(&with_step(&small, &"x".repeat(2 << 20)), "three");
    here.run_update(&tenant, Arc::clone(&grown));
    let summary = (grown.summary.clone(), Vec::new());
    until(summary, async || {
        let seen = lookup(&there, &tenant, &grown).await.unwrap();
        (seen.summary.clone(), seen.steps.clone())
    })
    .await;
    close([&here, &there]).await;
}

#[tokio::test]
async fn a_malformed_url_is_an_error_without_its_password() {
    for url in ["", "redis//x", "http://h:1/", "redis://:hunter2@host:notaport/"] {
        let error = Board::open(url, RedisSettings::default(), &Supervisor::default())
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), "the board is unavailable: prepare its connections");
        assert!(!format!("{error:?}").contains("hunter2"), "{error:?}");
    }
}
