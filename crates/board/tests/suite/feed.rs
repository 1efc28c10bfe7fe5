//! Changes of tenants in one process.

use std::sync::Arc;

use agent::record::RunStatus;
use board::{Board, LiveRun, TenantChange};
use futures_util::FutureExt as _;
use test_support::live_run::new_run;

use super::{ended, new_session_id, new_tenant, open, with_step};

/// The change of a run that has this status.
pub(super) fn change_of(run: &LiveRun) -> TenantChange {
    TenantChange::of_run(&run.summary)
}

#[tokio::test]
async fn a_reader_gets_each_new_status_of_the_runs_of_its_tenant_alone() {
    let (board, tenant, other) = (Board::default(), new_tenant(), new_tenant());
    let (mut reader, mut stranger) = (board.change_reader(&tenant), board.change_reader(&other));
    let mut run = (*new_run(None)).clone();
    run.summary.thread = Some("t".parse().unwrap());
    let run = Arc::new(run);
    assert_eq!(open(&board, &tenant, &run, true).await, Ok(()));
    assert_eq!(reader.next().now_or_never(), Some(Ok(change_of(&run))));

    // A step is no news.
    let stepped = with_step(&run, "one");
    board.run_update(&tenant, Arc::clone(&stepped));
    assert_eq!(reader.next().now_or_never(), None);

    let ended = ended(&stepped, RunStatus::Completed);
    board.run_update(&tenant, Arc::clone(&ended));
    board.run_close(&tenant, run.summary.run_id);
    let completed = TenantChange::Run {
        run_id: run.summary.run_id,
        status: RunStatus::Completed,
        session_id: Some(run.summary.session_id),
        thread: run.summary.thread.clone(),
    };
    assert_eq!(reader.next().now_or_never(), Some(Ok(completed)));
    assert_eq!(reader.next().now_or_never(), None);
    assert_eq!(stranger.next().now_or_never(), None);
}

#[tokio::test]
async fn a_run_that_did_not_begin_is_no_change() {
    let (board, tenant, base) = (Board::default(), new_tenant(), new_session_id());
    assert_eq!(open(&board, &tenant, &new_run(Some(base)), true).await, Ok(()));
    let mut reader = board.change_reader(&tenant);
    assert!(open(&board, &tenant, &new_run(Some(base)), true).await.is_err());
    assert_eq!(reader.next().now_or_never(), None);
}
