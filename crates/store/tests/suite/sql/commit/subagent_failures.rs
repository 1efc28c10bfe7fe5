//! Commits with sessions of subagents that fail, are repeated, race or are cancelled: all or
//! nothing.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use store::runs::Recorded;
use store::sessions::{Commit, ConflictPolicy};
use store::{CommitError, StoreError};
use test_support::databases::Engine;
use test_support::drafts::{call, run_id, session_id, summary, tenant};
use tokio::time::timeout;
use values::session::Bundle;

use super::subagents::{assert_sound, family, publish, subagent};
use crate::fixtures::{Fixture, postgres};

on_both_engines!(
    nothing_is_published_when_one_is_bad,
    a_failure_in_the_middle_publishes_nothing,
    a_refused_run_publishes_no_subagent,
    a_repeated_commit_finds_all_its_sessions,
    racing_runs_publish_all_their_subagents,
    cancelled_callers_leave_whole_commits,
);

/// The tables that a commit writes.
const TABLES: [&str; 5] = ["sessions", "runs", "history_segments", "history_branches", "states"];

async fn counts(fixture: &Fixture) -> Vec<i64> {
    let mut counts = Vec::new();
    for table in TABLES {
        counts.push(fixture.count(table).await);
    }
    counts
}

async fn refused(fixture: &Fixture, commit: &Commit, why: &str) -> CommitError {
    let before = counts(fixture).await;
    let error = fixture.store.session_commit(commit).await.expect_err(why);
    assert_eq!(counts(fixture).await, before, "{why}");
    error
}

/// Makes one of a family's sessions bad.
type Spoil<'a> = Box<dyn Fn(&mut Commit) + Send + 'a>;

async fn nothing_is_published_when_one_is_bad(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let foreign = Commit {
        tenant: tenant("other"),
        ..fixture.commit(None, &["foreign"])
    };
    let foreign = fixture.publish(&foreign).await;
    let spoils: [(&str, Spoil<'_>); 10] = [
        (
            "an open call",
            Box::new(|commit| {
                let history = commit.children[2].history.clone();
                commit.children[2].history = history.with_message(call("a"));
            }),
        ),
        (
            "a bad summary",
            Box::new(|commit| {
                let history = commit.children[2].history.clone();
                commit.children[2].history = history.with_message(summary("s", 0, 9));
            }),
        ),
        (
            "a base of another tenant",
            Box::new(|commit| {
                let own = commit.draft.session_id;
                commit.children[2] = subagent(commit, own, Some(&foreign), &["next"]);
                commit.children[1].subagent_of = Some(own);
            }),
        ),
        (
            "an id that is taken",
            Box::new(|commit| commit.children[0].session_id = root.head.session_id),
        ),
        (
            "the id of its own run's session",
            Box::new(|commit| commit.children[0].session_id = commit.draft.session_id),
        ),
        (
            "an id that is used twice",
            Box::new(|commit| commit.children[0].session_id = commit.children[1].session_id),
        ),
        (
            "another run",
            Box::new(|commit| commit.children[1].run_id = Some(run_id())),
        ),
        (
            "nobody's subagent",
            Box::new(|commit| commit.children[0].subagent_of = None),
        ),
        (
            "a stranger's subagent",
            Box::new(|commit| commit.children[0].subagent_of = Some(session_id())),
        ),
        (
            "a circle of subagents",
            Box::new(|commit| {
                commit.children[2].subagent_of = Some(commit.children[1].session_id);
            }),
        ),
    ];
    for (why, spoil) in spoils {
        for parent in [None, Some(&root)] {
            let mut commit = family(&fixture, parent);
            spoil(&mut commit);
            let error = refused(&fixture, &commit, why).await;
            assert!(
                matches!(
                    error,
                    CommitError::Store(StoreError::Failed { .. }) | CommitError::MissingBase
                ),
                "{why}: {error:?}"
            );
        }
    }
    let mut commit = fixture.commit(None, &["alone"]);
    commit.draft.subagent_of = Some(root.head.session_id);
    refused(&fixture, &commit, "a subagent's session without its starter's").await;
}

/// Lets the insertion of a helper's session do something else.
async fn on_helpers(fixture: &Fixture, postgres: &str, sqlite: &str) {
    let trigger = match fixture.database.engine {
        Engine::Postgres => format!(
            "create function spoil() returns trigger language plpgsql as $$ begin {postgres}; return new; end $$;
            create trigger spoil before insert on sessions for each row when (new.agent = 'helper')
            execute function spoil()"
        ),
        Engine::Sqlite => {
            format!("create trigger spoil before insert on sessions when new.agent = 'helper' begin {sqlite}; end")
        }
    };
    fixture.execute(&trigger).await;
}

async fn end_spoiling(fixture: &Fixture) {
    let drop = match fixture.database.engine {
        Engine::Postgres => "drop trigger spoil on sessions",
        Engine::Sqlite => "drop trigger spoil",
    };
    fixture.execute(drop).await;
}

async fn a_failure_in_the_middle_publishes_nothing(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    on_helpers(&fixture, "raise exception 'spoiled'", "select raise(abort, 'spoiled')").await;
    let commit = family(&fixture, Some(&root));
    let error = refused(&fixture, &commit, "a trigger that fails").await;
    assert!(
        matches!(error, CommitError::Store(StoreError::Failed { .. })),
        "{error:?}"
    );
    end_spoiling(&fixture).await;
    let committed = publish(&fixture, &commit).await;
    assert_eq!(
        committed.session.head.position.position, 1,
        "the failed attempt left no trace"
    );
    assert_sound(&fixture, &committed).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_is_lost_in_the_middle_publishes_nothing() {
    let Some(fixture) = postgres().await else { return };
    on_helpers(&fixture, "perform pg_terminate_backend(pg_backend_pid())", "").await;
    let commit = family(&fixture, None);
    let error = refused(&fixture, &commit, "a connection that ends").await;
    let CommitError::Store(error) = error else {
        panic!("{error:?}")
    };
    assert!(error.is_transient(), "{error:?}");
    end_spoiling(&fixture).await;
    let committed = publish(&fixture, &commit).await;
    assert_sound(&fixture, &committed).await;
}

async fn a_refused_run_publishes_no_subagent(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let winner = fixture.child(&root, &["winner"]).await;
    let commit = Commit {
        conflict: ConflictPolicy::Reject,
        ..family(&fixture, Some(&root))
    };
    let error = refused(&fixture, &commit, "a conflict").await;
    assert!(
        matches!(error, CommitError::Conflict { run_id } if run_id == winner.head.run_id),
        "{error:?}"
    );
    // A run that was recorded otherwise publishes nothing, either.
    let commit = family(&fixture, Some(&winner));
    let end = commit.run.clone().unwrap();
    let recorded = fixture.store.run_record(&fixture.tenant, &end).await.unwrap();
    assert_eq!(recorded, Recorded::Now);
    refused(&fixture, &commit, "a recorded run").await;
}

async fn a_repeated_commit_finds_all_its_sessions(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    let base = publish(&fixture, &family(&fixture, None)).await.children.remove(0);
    for conflict in [ConflictPolicy::Fork, ConflictPolicy::Reject] {
        let parent = fixture.child(&root, &["parent"]).await;
        let mut commit = Commit {
            conflict,
            ..family(&fixture, Some(&parent))
        };
        let own = commit.draft.session_id;
        let continued = subagent(&commit, own, Some(&Arc::new(base.clone())), &["next"]);
        commit.children.push(continued);
        let first = publish(&fixture, &commit).await;
        let before = counts(&fixture).await;
        assert_eq!(publish(&fixture, &commit).await, first);
        assert_eq!(counts(&fixture).await, before);
        // The same session with another subagent is not the same commit.
        let another = subagent(&commit, own, None, &["another"]);
        commit.children.push(another);
        let error = refused(&fixture, &commit, "another subagent").await;
        assert!(matches!(error, CommitError::Exists), "{error:?}");
        commit.children.pop();
        commit.children[0].context.execution_count += 1;
        let error = refused(&fixture, &commit, "a subagent that has done something else").await;
        assert!(matches!(error, CommitError::Exists), "{error:?}");
    }
}

async fn racing_runs_publish_all_their_subagents(fixture: Fixture) {
    let mut committed = publish(&fixture, &family(&fixture, None)).await;
    let (base, root) = (Arc::new(committed.children.remove(0)), Arc::new(committed.session));
    let commits: Vec<Commit> = (0..12)
        .map(|_| {
            let mut commit = family(&fixture, Some(&root));
            let continued = subagent(&commit, commit.draft.session_id, Some(&base), &["next"]);
            commit.children.push(continued);
            commit
        })
        .collect();
    let all = join_all(commits.iter().map(|commit| publish(&fixture, commit))).await;
    for committed in &all {
        assert_sound(&fixture, committed).await;
    }
    let in_line = |bundle: &Bundle, line: &Bundle| bundle.head.position.branch_id == line.head.position.branch_id;
    assert_eq!(all.iter().filter(|done| in_line(&done.session, &root)).count(), 1);
    assert_eq!(all.iter().filter(|done| in_line(&done.children[3], &base)).count(), 1);
}

async fn cancelled_callers_leave_whole_commits(fixture: Fixture) {
    let root = fixture.root(&["root"]).await;
    for turn in 0..40_u64 {
        let commit = family(&fixture, Some(&root));
        // From before the first packet to after the last one.
        let left = timeout(
            Duration::from_micros(turn * turn * 9),
            fixture.store.session_commit(&commit),
        )
        .await;
        drop(left);
    }
    for _ in 0..8 {
        let committed = publish(&fixture, &family(&fixture, Some(&root))).await;
        assert_sound(&fixture, &committed).await;
    }
    // Waits for what the callers left behind.
    timeout(Duration::from_secs(10), fixture.store.close()).await.unwrap();
    assert_eq!(
        fixture.count("sessions").await,
        1 + 4 * (fixture.count("runs").await - 1)
    );
    assert_eq!(fixture.count("history_segments").await, fixture.count("sessions").await);
    if fixture.database.engine == Engine::Postgres {
        let idle = "select count(*) from pg_stat_activity
            where datname = current_database() and state like 'idle in transaction%'";
        assert_eq!(fixture.database.number(idle).await, 0);
    }
}
