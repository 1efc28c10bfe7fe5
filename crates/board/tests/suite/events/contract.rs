//! The promises of every board about events, changes and control messages, tested on each of them.

use std::sync::Arc;

use agent::record::{RunControl, RunStatus};
use board::{Board, ControlMessage, LiveRun};
use futures_util::{FutureExt as _, StreamExt as _};
use test_support::live_run::new_run;

use crate::{append, ended, event, lookup, new_tenant, open, opened, read, terminal, until, with_step};

contract! {
    events_are_read_in_order_from_any_point,
    a_tenant_reads_its_own_events_only,
    a_run_that_was_not_opened_emits_nothing,
    an_event_that_is_known_changes_nothing,
    events_after_a_gap_begin_anew,
    events_are_read_after_the_end,
    a_run_that_is_released_emits_nothing,
    another_attempt_goes_on_after_the_events_before_it,
    an_attempt_that_is_released_late_leaves_the_next_one_as_it_is,
    a_change_counts_from_the_call_on,
    a_change_of_another_run_wakes_no_reader,
    a_reader_that_stops_waiting_leaves_the_others_waiting,
    messages_reach_all_subscribers,
}

async fn events_are_read_in_order_from_any_point(board: &Board) {
    let (tenant, run) = (new_tenant(), new_run(None));
    let run_id = run.summary.run_id;
    assert_eq!(read(board, &tenant, &run, 0).await, "");
    assert_eq!(board.event_last(&tenant, run_id).await.unwrap(), 0);
    open(board, &tenant, &run, false).await.unwrap();
    assert_eq!(read(board, &tenant, &run, 0).await, "");
    append(board, &tenant, &run, 1..=5, "a");
    assert_eq!(board.event_last(&tenant, run_id).await.unwrap(), 5);
    for (after, wanted) in [
        (0, "1a 2a 3a 4a 5a"),
        (3, "4a 5a"),
        (5, ""),
        (6, ""),
        (u64::MAX - 1, ""),
        (u64::MAX, ""),
    ] {
        assert_eq!(read(board, &tenant, &run, after).await, wanted, "after {after}");
    }
    let two = board.event_read(&tenant, run_id, 1, 2).await.unwrap();
    assert_eq!(two, [event(&run, 2, "a"), event(&run, 3, "a")]);
}

async fn a_tenant_reads_its_own_events_only(board: &Board) {
    let (tenant, other, run) = (new_tenant(), new_tenant(), new_run(None));
    open(board, &tenant, &run, false).await.unwrap();
    append(board, &tenant, &run, 1..=2, "a");
    assert_eq!(read(board, &other, &run, 0).await, "");
    assert_eq!(board.event_last(&other, run.summary.run_id).await.unwrap(), 0);
}

async fn a_run_that_was_not_opened_emits_nothing(board: &Board) {
    let (tenant, other, run) = (new_tenant(), new_tenant(), new_run(None));
    append(board, &tenant, &run, 1..=2, "a");
    assert_eq!(read(board, &tenant, &run, 0).await, "");
    open(board, &tenant, &run, false).await.unwrap();
    append(board, &other, &run, 1..=2, "a");
    assert_eq!(read(board, &tenant, &run, 0).await, "");
    assert_eq!(read(board, &other, &run, 0).await, "");
}

async fn an_event_that_is_known_changes_nothing(board: &Board) {
    let tenant = new_tenant();
    let run = opened(board, &tenant, 3).await;
    append(board, &tenant, &run, 2..=4, "b");
    assert_eq!(read(board, &tenant, &run, 0).await, "1a 2a 3a 4b");
}

async fn events_after_a_gap_begin_anew(board: &Board) {
    let tenant = new_tenant();
    let run = opened(board, &tenant, 3).await;
    append(board, &tenant, &run, 6..=7, "b");
    assert_eq!(read(board, &tenant, &run, 5).await, "6b 7b");
    assert_eq!(read(board, &tenant, &run, 4).await, "");
    assert_eq!(board.event_last(&tenant, run.summary.run_id).await.unwrap(), 7);
}

async fn events_are_read_after_the_end(board: &Board) {
    for ends_first in [true, false] {
        let (tenant, run) = (new_tenant(), new_run(None));
        let run_id = run.summary.run_id;
        open(board, &tenant, &run, false).await.unwrap();
        append(board, &tenant, &run, 1..=2, "a");
        if ends_first {
            board.event_append(&tenant, terminal(&run, 3));
        }
        board.run_update(&tenant, ended(&run, RunStatus::Completed));
        board.run_close(&tenant, run_id);
        if !ends_first {
            board.event_append(&tenant, terminal(&run, 3));
        }
        assert_eq!(read(board, &tenant, &run, 0).await, "1a 2a 3.");
        assert_eq!(board.event_last(&tenant, run_id).await.unwrap(), 3);
    }
}

async fn a_run_that_is_released_emits_nothing(board: &Board) {
    let tenant = new_tenant();
    let run = opened(board, &tenant, 2).await;
    board.run_release(&tenant, run.summary.run_id, run.fence);
    // What an attempt emits that no longer has the run is not retained.
    append(board, &tenant, &run, 3..=3, "b");
    assert_eq!(read(board, &tenant, &run, 2).await, "");
    assert!(board.event_last(&tenant, run.summary.run_id).await.unwrap() < 3);
}

/// The events before it are in the store by then.
async fn another_attempt_goes_on_after_the_events_before_it(board: &Board) {
    let tenant = new_tenant();
    let run = opened(board, &tenant, 2).await;
    board.run_release(&tenant, run.summary.run_id, run.fence);
    let next = Arc::new(LiveRun::clone(&run).leased(run.fence + 1));
    open(board, &tenant, &next, false).await.unwrap();
    append(board, &tenant, &run, 3..=4, "b");
    until("3b 4b".to_owned(), async || read(board, &tenant, &run, 2).await).await;
    assert_eq!(read(board, &tenant, &run, 1).await, "");
    assert_eq!(board.event_last(&tenant, run.summary.run_id).await.unwrap(), 4);
}

async fn an_attempt_that_is_released_late_leaves_the_next_one_as_it_is(board: &Board) {
    let tenant = new_tenant();
    let run = opened(board, &tenant, 2).await;
    let next = Arc::new(LiveRun::clone(&run).leased(run.fence + 1));
    open(board, &tenant, &next, false).await.unwrap();
    append(board, &tenant, &run, 3..=3, "b");
    board.run_update(&tenant, Arc::clone(&run));
    board.run_release(&tenant, run.summary.run_id, run.fence);
    assert_eq!(lookup(board, &tenant, &run).await, Some(next));
    append(board, &tenant, &run, 4..=4, "b");
    until("3b 4b".to_owned(), async || read(board, &tenant, &run, 2).await).await;
}

async fn a_change_counts_from_the_call_on(board: &Board) {
    let (tenant, run) = (new_tenant(), new_run(None));
    let run_id = run.summary.run_id;
    let change = |board: &Board| board.run_change(run_id);
    let opened = change(board);
    open(board, &tenant, &run, false).await.unwrap();
    opened.await;
    let (first, second) = (change(board), change(board));
    append(board, &tenant, &run, 1..=1, "a");
    assert_eq!((first.now_or_never(), second.now_or_never()), (Some(()), Some(())));
    let updated = change(board);
    board.run_update(&tenant, with_step(&run, "one"));
    assert_eq!(updated.now_or_never(), Some(()));
    let closed = change(board);
    board.run_close(&tenant, run_id);
    assert_eq!(closed.now_or_never(), Some(()));
    let late = tokio::spawn(change(board));
    tokio::task::yield_now().await;
    board.event_append(&tenant, terminal(&run, 2));
    late.await.unwrap();
}

async fn a_change_of_another_run_wakes_no_reader(board: &Board) {
    let (tenant, run, other) = (new_tenant(), new_run(None), new_run(None));
    for run in [&run, &other] {
        open(board, &tenant, run, false).await.unwrap();
    }
    let mut change = board.run_change(run.summary.run_id);
    append(board, &tenant, &other, 1..=50, "a");
    assert_eq!((&mut change).now_or_never(), None);
    append(board, &tenant, &run, 1..=1, "a");
    assert_eq!(change.now_or_never(), Some(()));
}

async fn a_reader_that_stops_waiting_leaves_the_others_waiting(board: &Board) {
    let (tenant, run) = (new_tenant(), new_run(None));
    open(board, &tenant, &run, false).await.unwrap();
    let waits = board.run_change(run.summary.run_id);
    let never_polled = board.run_change(run.summary.run_id);
    let mut polled = board.run_change(run.summary.run_id);
    let _ = (&mut polled).now_or_never();
    drop((never_polled, polled));
    append(board, &tenant, &run, 1..=1, "a");
    assert_eq!(waits.now_or_never(), Some(()));
}

async fn messages_reach_all_subscribers(board: &Board) {
    let (tenant, run) = (new_tenant(), new_run(None));
    let run_id = run.summary.run_id;
    open(board, &tenant, &run, false).await.unwrap();
    let received = (0..2).map(|_| board.control_messages()).collect::<Vec<_>>();
    let sent = [ControlMessage::Refresh, ControlMessage::Control(RunControl::Stop)];
    for message in &sent {
        assert!(board.control_send(&tenant, run_id, message.clone()).await);
    }
    for messages in received {
        // The shared server has messages of other tests as well.
        let own = messages.filter(|(owner, _, _)| std::future::ready(*owner == tenant));
        let own: Vec<_> = own.take(2).collect().await;
        assert_eq!(own, sent.clone().map(|message| (tenant.clone(), run_id, message)));
    }
}
