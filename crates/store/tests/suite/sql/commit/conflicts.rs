//! Several sessions that continue the same one, and attempts that are repeated.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::future::join_all;
use store::CommitError;
use store::runs::Recorded;
use store::sessions::{Commit, ConflictPolicy};
use test_support::drafts::{now, run_of};
use values::ids::{BranchId, UuidV7Source};

use crate::fixtures::Fixture;

on_both_engines!(
    racing_continuations_all_commit,
    racing_rejections_let_one_through,
    a_rejected_commit_names_the_other_run,
    a_repeated_commit_returns_the_first_result,
    another_session_of_the_same_id_is_refused,
    a_run_that_was_recorded_blocks_its_session,
);

async fn racing_continuations_all_commit(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let commits: Vec<Commit> = (0..32)
        .map(|turn| fixture.commit(Some(&root), &[&turn.to_string()]))
        .collect();
    let bundles = join_all(commits.iter().map(|commit| fixture.publish(commit))).await;
    let positions: BTreeSet<_> = bundles
        .iter()
        .map(|bundle| (bundle.head.position.branch_id, bundle.head.position.position))
        .collect();
    assert_eq!(positions.len(), 32);
    for bundle in &bundles {
        assert_eq!(fixture.load(bundle.head.session_id).await, **bundle);
    }
    let appended = bundles
        .iter()
        .filter(|bundle| bundle.head.position.branch_id == root.head.position.branch_id);
    assert_eq!(appended.count(), 1);
    assert_eq!(fixture.count("history_branches").await, 32);
}

async fn racing_rejections_let_one_through(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let commits: Vec<Commit> = (0..16)
        .map(|turn| Commit {
            conflict: ConflictPolicy::Reject,
            ..fixture.commit(Some(&root), &[&turn.to_string()])
        })
        .collect();
    let results = join_all(commits.iter().map(|commit| fixture.store.session_commit(commit))).await;
    let winners: Vec<_> = results.iter().filter_map(|result| result.as_ref().ok()).collect();
    assert_eq!(winners.len(), 1);
    for result in &results {
        if let Err(error) = result {
            assert!(
                matches!(error, CommitError::Conflict { run_id } if *run_id == winners[0].session.head.run_id),
                "{error:?}"
            );
        }
    }
    for (table, rows) in [
        ("sessions", 2),
        ("runs", 2),
        ("history_segments", 2),
        ("history_branches", 1),
    ] {
        assert_eq!(fixture.count(table).await, rows, "{table}");
    }
}

async fn a_rejected_commit_names_the_other_run(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let imported = Commit {
        run: None,
        ..fixture.commit(Some(&root), &["imported"])
    };
    let imported = Commit {
        draft: values::session::BundleDraft {
            run_id: None,
            ..imported.draft
        },
        ..imported
    };
    let first = fixture.publish(&imported).await;
    let reject = Commit {
        conflict: ConflictPolicy::Reject,
        ..fixture.commit(Some(&root), &["late"])
    };
    let error = fixture.store.session_commit(&reject).await.unwrap_err();
    assert!(matches!(error, CommitError::Conflict { run_id: None }), "{error:?}");
    let second = fixture.child(&first, &["second"]).await;
    let reject = Commit {
        conflict: ConflictPolicy::Reject,
        ..fixture.commit(Some(&first), &["late"])
    };
    let error = fixture.store.session_commit(&reject).await.unwrap_err();
    assert!(
        matches!(error, CommitError::Conflict { run_id } if run_id == second.head.run_id),
        "{error:?}"
    );
}

async fn a_repeated_commit_returns_the_first_result(fixture: Fixture) {
    let root = fixture.commit(None, &["root"]);
    let base = fixture.publish(&root).await;
    let append = Commit {
        conflict: ConflictPolicy::Reject,
        ..fixture.commit(Some(&base), &["append"])
    };
    let appended = fixture.publish(&append).await;
    let fork = fixture.commit(Some(&base), &["fork"]);
    let forked = fixture.publish(&fork).await;
    let before = fixture.count("history_segments").await;
    let mut with_fork = append.clone();
    with_fork.conflict = ConflictPolicy::Fork;
    for (commit, bundle) in [
        (&root, &base),
        (&append, &appended),
        (&with_fork, &appended),
        (&fork, &forked),
    ] {
        assert_eq!(fixture.publish(commit).await, *bundle);
    }
    assert_eq!(fixture.count("history_segments").await, before);
    assert_eq!(fixture.count("runs").await, 3);
}

async fn another_session_of_the_same_id_is_refused(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    for parent in [None, Some(&root)] {
        let mut commit = fixture.commit(parent, &["else"]);
        commit.draft.session_id = root.head.session_id;
        commit.draft.context.updated_at = now();
        commit.run = Some(run_of(&commit.draft));
        let error = fixture.store.session_commit(&commit).await.unwrap_err();
        assert!(matches!(error, CommitError::Exists), "{error:?}");
        commit.draft.new_branch_id = BranchId::generate(&UuidV7Source);
    }
    assert_eq!(fixture.load(root.head.session_id).await, *root);
    for table in ["sessions", "history_segments", "runs"] {
        assert_eq!(fixture.count(table).await, 1, "{table}");
    }
}

async fn a_run_that_was_recorded_blocks_its_session(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let commit = fixture.commit(Some(&root), &["next"]);
    let end = commit.run.clone().unwrap();
    let recorded = fixture.store.run_record(&fixture.tenant, &end).await.unwrap();
    assert_eq!(recorded, Recorded::Now);
    let error = fixture.store.session_commit(&commit).await.unwrap_err();
    assert!(matches!(error, CommitError::Store(_)), "{error:?}");
    assert_eq!(fixture.count("sessions").await, 1);
    let next = fixture.child(&Arc::clone(&root), &["next"]).await;
    assert_eq!(next.head.position.position, 1, "the failed attempt left no trace");
}
