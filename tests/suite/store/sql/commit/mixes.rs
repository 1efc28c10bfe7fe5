//! Any mix of commits at once has the results of the same commits one after another.

use std::sync::Arc;

use agent_runtime::session::{Bundle, EnvironmentState};
use agent_runtime::store::{Commit, CommitError, Committed, ConflictPolicy};
use agent_runtime::tenant::TenantId;
use futures_util::future::join_all;
use proptest::prelude::*;
use serde_json::json;

use crate::store::fixtures::{Fixture, run_of, tenant};
use crate::store::model_check::check;
use crate::support::databases::Engine;

/// How many sessions there are to continue.
const PARENTS: usize = 3;

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// A session without a parent.
    Root,
    /// A session that continues one of the parents.
    Child(usize, ConflictPolicy),
    /// The same commit as an earlier one of the list, if there is one.
    Repeated(usize),
    /// Another session with the id of a parent.
    TakenId(usize),
    /// An imported session, without a run.
    Imported,
    /// A session of some size.
    Large,
}

fn kind() -> impl Strategy<Value = Kind> {
    let policy = prop_oneof![Just(ConflictPolicy::Fork), Just(ConflictPolicy::Reject)];
    prop_oneof![
        3 => Just(Kind::Root),
        6 => (0..PARENTS, policy).prop_map(|(parent, policy)| Kind::Child(parent, policy)),
        1 => (0..40_usize).prop_map(Kind::Repeated),
        1 => (0..PARENTS).prop_map(Kind::TakenId),
        1 => Just(Kind::Imported),
        1 => Just(Kind::Large),
    ]
}

#[test]
fn on_postgres_a_mix_at_once_equals_the_mix_one_by_one() {
    check(Engine::Postgres, 40, kind(), 1..40, &play);
}

#[test]
fn on_sqlite_a_mix_at_once_equals_the_mix_one_by_one() {
    check(Engine::Sqlite, 40, kind(), 1..40, &play);
}

async fn play(fixture: &Fixture, kinds: &[Kind]) {
    let id = uuid::Uuid::now_v7().simple().to_string();
    let [at_once, one_by_one] = ["at-once", "one-by-one"].map(|name| tenant(&format!("{name}-{id}")));
    let of = |commit: &Commit, tenant| Commit {
        tenant: TenantId::clone(tenant),
        ..commit.clone()
    };
    let mut parents: Vec<Arc<Bundle>> = Vec::new();
    for number in 0..PARENTS {
        let root = fixture.commit(None, &[&format!("parent {number}")]);
        let published = fixture.store.session_commit(&of(&root, &at_once)).await.unwrap();
        fixture.store.session_commit(&of(&root, &one_by_one)).await.unwrap();
        parents.push(Arc::new(published.session));
    }
    let mut commits: Vec<Commit> = Vec::new();
    for (number, kind) in kinds.iter().enumerate() {
        let commit = make(fixture, &parents, &commits, number, *kind);
        commits.push(commit);
    }

    let together: Vec<_> = commits.iter().map(|commit| of(commit, &at_once)).collect();
    let together = join_all(together.iter().map(|commit| fixture.store.session_commit(commit))).await;
    // Of those that continue the same session, any may come first, but one does.
    let mut order: Vec<usize> = (0..commits.len()).collect();
    order.sort_by_key(|index| !is_appended(&together[*index]));
    let mut apart: Vec<Option<Result<Committed, CommitError>>> = commits.iter().map(|_| None).collect();
    for index in order {
        apart[index] = Some(fixture.store.session_commit(&of(&commits[index], &one_by_one)).await);
    }
    for (number, (one, other)) in together.iter().zip(&apart).enumerate() {
        let other = other.as_ref().unwrap();
        assert_eq!(described(one), described(other), "{number}: {:?}", kinds[number]);
    }
    for table in ["sessions", "runs", "history_segments", "history_branches", "states"] {
        let count = async |tenant| fixture.count(&format!("{table} where tenant = '{tenant}'")).await;
        assert_eq!(count(&at_once).await, count(&one_by_one).await, "{table}");
    }
    for committed in together.iter().flatten() {
        let session_id = committed.session.head.session_id;
        let stored = fixture.store.bundle_load(&at_once, session_id).await.unwrap();
        assert_eq!(stored.as_ref(), Some(&committed.session));
    }
}

fn make(fixture: &Fixture, parents: &[Arc<Bundle>], earlier: &[Commit], number: usize, kind: Kind) -> Commit {
    let text = format!("message {number}");
    match kind {
        Kind::Child(parent, conflict) => {
            let mut commit = fixture.commit(Some(&parents[parent]), &[&text]);
            // Several sessions of a mix have the same new environment.
            let environment = EnvironmentState {
                variables: [("number".to_owned(), json!(number % 3))].into(),
                ..(*commit.draft.environment).clone()
            };
            commit.draft.environment = Arc::new(environment);
            Commit { conflict, ..commit }
        }
        Kind::Repeated(index) if index < earlier.len() => earlier[index].clone(),
        Kind::Root | Kind::Repeated(_) => fixture.commit(None, &[&text]),
        Kind::TakenId(parent) => {
            let mut commit = fixture.commit(None, &[&text]);
            commit.draft.session_id = parents[parent].head.session_id;
            commit.run = Some(run_of(&commit.draft));
            commit
        }
        Kind::Imported => {
            let mut commit = fixture.commit(None, &[&text]);
            commit.draft.run_id = None;
            Commit { run: None, ..commit }
        }
        Kind::Large => fixture.commit(None, &[&format!("{text} {}", uuid::Uuid::now_v7()).repeat(20_000)]),
    }
}

fn is_appended(result: &Result<Committed, CommitError>) -> bool {
    let appended = result.as_ref().ok();
    appended.is_some_and(|committed| committed.session.head.position.position > 0)
}

fn described(result: &Result<Committed, CommitError>) -> Result<&Committed, String> {
    result.as_ref().map_err(|error| format!("{error:?}"))
}
