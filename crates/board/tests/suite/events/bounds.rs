//! How much a board keeps of events: a bound for each run, a time and a bound for those of ended
//! runs.

use std::sync::Arc;
use std::time::Duration;

use agent::record::event_weight;
use allocation_counter::measure;
use board::{Board, BoardSettings, LiveRun};
use test_support::live_run::new_run;
use tokio::time::advance;
use values::tenant::TenantId;

use crate::{append, event, new_tenant, open, opened, read, terminal};

const RETENTION: Duration = Duration::from_mins(10);

/// A board with room for so many events of a run, and of all ended runs.
fn board(run_events: usize, ended_events: usize) -> Board {
    let weight = event_weight(&event(&new_run(None), 1, "a").payload);
    Board::new(BoardSettings {
        event_retention: RETENTION,
        max_run_event_bytes: run_events * weight,
        max_live_event_bytes: usize::MAX,
        max_ended_event_bytes: ended_events * weight,
    })
}

/// A board with room for so many events of all runs at work.
fn board_of_live(live_events: usize) -> Board {
    let weight = event_weight(&event(&new_run(None), 1, "a").payload);
    Board::new(BoardSettings {
        max_live_event_bytes: live_events * weight,
        ..BoardSettings::default()
    })
}

/// Counts the events that are retained of a run.
async fn count(board: &Board, tenant: &TenantId, run: &LiveRun, last: u64) -> u64 {
    for first in 1..=last {
        if !read(board, tenant, run, first - 1).await.is_empty() {
            return last + 1 - first;
        }
    }
    0
}

/// A run that has emitted two events and ended.
async fn ended_run(board: &Board, tenant: &TenantId) -> Arc<LiveRun> {
    let run = opened(board, tenant, 2).await;
    board.run_close(tenant, run.summary.run_id);
    run
}

#[tokio::test]
async fn the_oldest_events_of_a_long_run_go_first() {
    let (board, tenant, run) = (board(5, 100), new_tenant(), new_run(None));
    open(&board, &tenant, &run, false).await.unwrap();
    append(&board, &tenant, &run, 1..=100, "a");
    assert_eq!(read(&board, &tenant, &run, 95).await, "96a 97a 98a 99a 100a");
    assert_eq!(read(&board, &tenant, &run, 94).await, "");
    assert_eq!(read(&board, &tenant, &run, 0).await, "");
    // The last one is retained, however large it is.
    board.event_append(&tenant, event(&run, 101, &"x".repeat(1 << 20)));
    assert_eq!(read(&board, &tenant, &run, 100).await, "101xxxx");
    assert_eq!(read(&board, &tenant, &run, 99).await, "");
}

#[tokio::test(start_paused = true)]
async fn events_of_an_ended_run_are_forgotten_in_time() {
    let (board, tenant) = (board(100, 100), new_tenant());
    let run = ended_run(&board, &tenant).await;
    advance(RETENTION.saturating_sub(Duration::from_secs(1))).await;
    assert_eq!(read(&board, &tenant, &run, 0).await, "1a 2a");
    advance(Duration::from_secs(1)).await;
    assert_eq!(read(&board, &tenant, &run, 0).await, "");
    assert_eq!(board.event_last(&tenant, run.summary.run_id).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_goes_on_is_not_forgotten() {
    let (board, tenant, other) = (board(100, 4), new_tenant(), new_tenant());
    let run = ended_run(&board, &tenant).await;
    open(&board, &tenant, &run, false).await.unwrap();
    append(&board, &tenant, &run, 1..=2, "a");
    for _ in 0..10 {
        advance(RETENTION).await;
        ended_run(&board, &other).await;
    }
    append(&board, &tenant, &run, 3..=3, "b");
    assert_eq!(read(&board, &tenant, &run, 0).await, "1a 2a 3b");
}

#[tokio::test]
async fn the_run_that_ended_first_is_forgotten_first() {
    let (board, tenant, live) = (board(100, 6), new_tenant(), new_run(None));
    open(&board, &tenant, &live, false).await.unwrap();
    append(&board, &tenant, &live, 1..=50, "a");
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(ended_run(&board, &tenant).await);
    }
    for run in &runs[..2] {
        assert_eq!(read(&board, &tenant, run, 0).await, "");
    }
    for run in &runs[2..] {
        assert_eq!(read(&board, &tenant, run, 0).await, "1a 2a");
    }
    assert_eq!(read(&board, &tenant, &live, 48).await, "49a 50a");
}

#[tokio::test]
async fn runs_at_work_share_their_room_and_those_with_most_events_lose_some() {
    let (board, tenant) = (board_of_live(160), new_tenant());
    let (small, large) = (new_run(None), [new_run(None), new_run(None), new_run(None)]);
    open(&board, &tenant, &small, false).await.unwrap();
    append(&board, &tenant, &small, 1..=10, "a");
    for run in &large {
        open(&board, &tenant, run, false).await.unwrap();
    }
    for sequence in 1..=1_000 {
        for run in &large {
            append(&board, &tenant, run, sequence..=sequence, "a");
        }
        let mut sum = count(&board, &tenant, &small, 10).await;
        assert_eq!(sum, 10, "a run that has little loses nothing");
        if sequence % 100 == 0 {
            for run in &large {
                let retained = count(&board, &tenant, run, sequence).await;
                // An eighth is freed at a time, and what is left is shared equally.
                assert!((43..=51).contains(&retained), "{retained}");
                sum += retained;
            }
            assert!(sum <= 160, "{sum}");
        }
    }
}

#[tokio::test]
async fn a_thousand_runs_take_no_more_than_their_room_and_retain_their_last_events() {
    let (board, tenant) = (board_of_live(100), new_tenant());
    let mut runs = Vec::new();
    for _ in 0..1_000 {
        runs.push(opened(&board, &tenant, 20).await);
    }
    let mut retained = 0;
    for run in &runs {
        let count = count(&board, &tenant, run, 20).await;
        assert!(count >= 1);
        retained += count;
    }
    assert!(retained <= 1_000 + 100 / 8 + 1, "{retained}");
    // Runs that end make room: their events are counted elsewhere.
    for run in &runs[1..] {
        board.run_close(&tenant, run.summary.run_id);
    }
    append(&board, &tenant, &runs[0], 21..=100, "a");
    assert!(count(&board, &tenant, &runs[0], 100).await >= 80);
}

#[tokio::test]
async fn the_room_is_as_it_was_once_a_large_last_event_has_gone() {
    let (board, tenant) = (board_of_live(10), new_tenant());
    let (large, long) = (new_run(None), new_run(None));
    open(&board, &tenant, &large, false).await.unwrap();
    board.event_append(&tenant, event(&large, 1, &"x".repeat(1 << 20)));
    board.run_close(&tenant, large.summary.run_id);
    open(&board, &tenant, &long, false).await.unwrap();
    append(&board, &tenant, &long, 1..=100, "a");
    let retained = count(&board, &tenant, &long, 100).await;
    assert!((1..=10).contains(&retained), "{retained}");
}

#[tokio::test]
async fn the_end_is_counted_once() {
    let (board, tenant) = (board(100, 40), new_tenant());
    let mut runs = Vec::new();
    for _ in 0..3 {
        let run = opened(&board, &tenant, 2).await;
        board.event_append(&tenant, terminal(&run, 3));
        board.run_close(&tenant, run.summary.run_id);
        board.run_close(&tenant, run.summary.run_id);
        runs.push(run);
    }
    for run in &runs {
        assert_eq!(read(&board, &tenant, run, 0).await, "1a 2a 3.");
    }
}

#[tokio::test]
async fn an_event_that_nobody_reads_is_not_encoded() {
    let (board, tenant, run) = (Board::default(), new_tenant(), new_run(None));
    open(&board, &tenant, &run, false).await.unwrap();
    for sequence in 1..=1_000 {
        let event = event(&run, sequence, &"x".repeat(10_000));
        let taken = measure(|| board.event_append(&tenant, event));
        // The list of events doubles.
        assert!(taken.count_total <= 1, "{taken:?}");
        assert!(taken.bytes_total <= 2 * 8 * sequence.max(16), "{taken:?}");
    }
    assert_eq!(count(&board, &tenant, &run, 1_000).await, 1_000);
}
