//! The promises of every board, tested on each of them.

use std::sync::Arc;

use agent::record::RunStatus;
use board::Board;
use futures_util::future::join_all;
use test_support::live_run::new_run;
use values::ids::RunId;

use super::{ended, listed, lookup, new_session_id, new_tenant, open, with_step};

contract! {
    a_run_is_shown_from_its_beginning_to_its_close,
    an_update_shows_where_a_run_stands,
    runs_are_listed_newest_first,
    a_tenant_sees_its_own_runs_only,
    an_exclusive_run_yields_to_any_other_of_its_base,
    a_run_that_is_not_exclusive_never_yields,
    a_run_that_has_ended_is_shown_and_is_no_rival,
    a_closed_run_is_no_rival,
    one_of_many_exclusive_runs_wins,
    a_run_that_was_never_opened_can_be_closed_and_updated,
}

async fn a_run_is_shown_from_its_beginning_to_its_close(board: &Board) {
    let (tenant, run) = (new_tenant(), new_run(None));
    let (run_id, session_id) = (run.summary.run_id, run.summary.session_id);
    assert_eq!(lookup(board, &tenant, &run).await, None);
    assert_eq!(board.run_lookup_by_session(&tenant, session_id).await, None);

    assert_eq!(open(board, &tenant, &run, false).await, Ok(()));
    assert_eq!(lookup(board, &tenant, &run).await, Some(Arc::clone(&run)));
    assert_eq!(board.run_lookup_by_session(&tenant, session_id).await, Some(run_id));
    assert_eq!(board.run_list(&tenant).await, [Arc::clone(&run)]);

    board.run_close(&tenant, run_id);
    assert_eq!(lookup(board, &tenant, &run).await, None);
    assert_eq!(board.run_lookup_by_session(&tenant, session_id).await, None);
    assert_eq!(board.run_list(&tenant).await, []);
}

async fn an_update_shows_where_a_run_stands(board: &Board) {
    let (tenant, run) = (new_tenant(), new_run(None));
    assert_eq!(open(board, &tenant, &run, false).await, Ok(()));
    let first = with_step(&run, "one");
    board.run_update(&tenant, Arc::clone(&first));
    assert_eq!(lookup(board, &tenant, &run).await, Some(Arc::clone(&first)));
    let second = with_step(&first, "two");
    board.run_update(&tenant, Arc::clone(&second));
    assert_eq!(lookup(board, &tenant, &run).await, Some(Arc::clone(&second)));
    assert_eq!(board.run_list(&tenant).await, [second]);
}

async fn runs_are_listed_newest_first(board: &Board) {
    let tenant = new_tenant();
    let runs: Vec<_> = (0..5).map(|_| new_run(None)).collect();
    for index in [3, 0, 4, 1, 2] {
        assert_eq!(open(board, &tenant, &runs[index], false).await, Ok(()));
    }
    let newest_first: Vec<RunId> = runs.iter().rev().map(|run| run.summary.run_id).collect();
    assert_eq!(listed(board, &tenant).await, newest_first);
}

async fn a_tenant_sees_its_own_runs_only(board: &Board) {
    let base = new_session_id();
    let (tenant, other, run) = (new_tenant(), new_tenant(), new_run(Some(base)));
    assert_eq!(open(board, &tenant, &run, false).await, Ok(()));
    assert_eq!(lookup(board, &other, &run).await, None);
    let reserved = board.run_lookup_by_session(&other, run.summary.session_id).await;
    assert_eq!(reserved, None);
    assert_eq!(listed(board, &other).await, []);
    assert_eq!(open(board, &other, &new_run(Some(base)), true).await, Ok(()));
    board.run_close(&other, run.summary.run_id);
    assert_eq!(lookup(board, &tenant, &run).await, Some(run));
}

async fn an_exclusive_run_yields_to_any_other_of_its_base(board: &Board) {
    for exclusive in [false, true] {
        let (tenant, base) = (new_tenant(), new_session_id());
        let (first, second) = (new_run(Some(base)), new_run(Some(base)));
        assert_eq!(open(board, &tenant, &first, exclusive).await, Ok(()));
        let first_id = first.summary.run_id;
        assert_eq!(open(board, &tenant, &second, true).await, Err(first_id));
        assert_eq!(listed(board, &tenant).await, [first_id]);
        let session_id = second.summary.session_id;
        assert_eq!(board.run_lookup_by_session(&tenant, session_id).await, None);
        // Neither another base nor none is contended.
        assert_eq!(
            open(board, &tenant, &new_run(Some(new_session_id())), true).await,
            Ok(())
        );
        assert_eq!(open(board, &tenant, &new_run(None), true).await, Ok(()));
        assert_eq!(open(board, &tenant, &new_run(None), true).await, Ok(()));
    }
}

async fn a_run_that_is_not_exclusive_never_yields(board: &Board) {
    let (tenant, base) = (new_tenant(), new_session_id());
    for exclusive in [true, false, false] {
        assert_eq!(open(board, &tenant, &new_run(Some(base)), exclusive).await, Ok(()));
    }
    assert_eq!(listed(board, &tenant).await.len(), 3);
}

async fn a_run_that_has_ended_is_shown_and_is_no_rival(board: &Board) {
    for status in [
        RunStatus::Completed,
        RunStatus::Stopped,
        RunStatus::Failed,
        RunStatus::Cancelled,
    ] {
        let (tenant, base) = (new_tenant(), new_session_id());
        let (run, next) = (new_run(Some(base)), new_run(Some(base)));
        assert_eq!(open(board, &tenant, &run, true).await, Ok(()));
        let run = ended(&run, status);
        board.run_update(&tenant, Arc::clone(&run));
        assert_eq!(lookup(board, &tenant, &run).await, Some(Arc::clone(&run)));
        assert_eq!(open(board, &tenant, &next, true).await, Ok(()), "{status}");
        assert_eq!(listed(board, &tenant).await, [next.summary.run_id, run.summary.run_id]);
    }
}

async fn a_closed_run_is_no_rival(board: &Board) {
    let (tenant, base) = (new_tenant(), new_session_id());
    for _ in 0..50 {
        let run = new_run(Some(base));
        assert_eq!(open(board, &tenant, &run, true).await, Ok(()));
        board.run_update(&tenant, with_step(&run, "one"));
        board.run_close(&tenant, run.summary.run_id);
    }
    assert_eq!(listed(board, &tenant).await, []);
}

async fn one_of_many_exclusive_runs_wins(board: &Board) {
    let (tenant, base) = (new_tenant(), new_session_id());
    let runs: Vec<_> = (0..40).map(|_| new_run(Some(base))).collect();
    let opened = join_all(runs.iter().map(|run| open(board, &tenant, run, true))).await;
    let winners: Vec<RunId> = runs
        .iter()
        .zip(&opened)
        .filter(|(_, opened)| opened.is_ok())
        .map(|(run, _)| run.summary.run_id)
        .collect();
    assert_eq!(winners.len(), 1);
    assert_eq!(listed(board, &tenant).await, winners);
    let refused = opened.into_iter().filter_map(Result::err);
    assert!(refused.into_iter().all(|rival| rival == winners[0]));
}

async fn a_run_that_was_never_opened_can_be_closed_and_updated(board: &Board) {
    let (tenant, run) = (new_tenant(), new_run(None));
    board.run_close(&tenant, run.summary.run_id);
    assert_eq!(listed(board, &tenant).await, []);
    board.run_update(&tenant, Arc::clone(&run));
    assert_eq!(lookup(board, &tenant, &run).await, Some(run));
}
