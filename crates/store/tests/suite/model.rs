//! Any interleaving of continues and forks, loaded back, equals a naive model in memory.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use store::sessions::ConflictPolicy;
use store::{CommitError, Sessions};
use test_support::databases::Engine;
use test_support::drafts::{summary, user};
use values::clock::SystemClock;
use values::json::Value;
use values::session::{Bundle, EnvironmentState};

use super::fixtures::Fixture;
use super::model_check::check;

/// One turn: the session that it continues, and what it does. A small number counts from the newest
/// session, a large one from all.
#[derive(Debug, Clone)]
struct Turn {
    base: prop::sample::Index,
    is_tip: bool,
    is_root: bool,
    messages: Vec<String>,
    city: Option<u8>,
    reject: bool,
    /// Ends with a summary up to this share of what is not covered yet.
    compact: Option<prop::sample::Index>,
}

/// A session of the naive model.
#[derive(Debug, Clone)]
struct Known {
    id: values::ids::SessionId,
    parent: Option<usize>,
    texts: Vec<String>,
    /// Where the newest summary ends.
    start: usize,
    city: Value,
    is_continued: bool,
}

fn turn() -> impl Strategy<Value = Turn> {
    (
        any::<prop::sample::Index>(),
        prop::bool::weighted(0.6),
        prop::bool::weighted(0.05),
        prop::collection::vec("\\PC{1,12}", 0..3),
        prop::option::weighted(0.3, 0..3_u8),
        prop::bool::weighted(0.2),
        prop::option::weighted(0.2, any::<prop::sample::Index>()),
    )
        .prop_map(|(base, is_tip, is_root, messages, city, reject, compact)| Turn {
            base,
            is_tip,
            is_root,
            messages,
            city,
            reject,
            compact,
        })
}

async fn play(fixture: &Fixture, turns: &[Turn]) {
    let mut known: Vec<Known> = Vec::new();
    for turn in turns {
        let parent = match known.len() {
            0 => None,
            _ if turn.is_root => None,
            sessions if turn.is_tip => Some(sessions - 1),
            sessions => Some(turn.base.index(sessions)),
        };
        let base: Option<Arc<Bundle>> = match parent {
            Some(parent) => Some(Arc::new(fixture.load(known[parent].id).await)),
            None => None,
        };
        let mut all = parent.map_or_else(Vec::new, |parent| known[parent].texts.clone());
        all.extend(turn.messages.iter().cloned());
        let mut messages: Vec<_> = turn.messages.iter().map(|text| user(text)).collect();
        let mut start = parent.map_or(0, |parent| known[parent].start);
        if let Some(share) = turn.compact
            && all.len() > start
        {
            let from = start;
            start += 1 + share.index(all.len() - start);
            messages.push(summary("all that", from as u64, start as u64));
            all.push("all that".to_owned());
        }
        let mut commit = fixture.commit_of(base.as_ref(), messages);
        let mut city = parent.map_or(json!(null), |parent| known[parent].city.clone());
        if let Some(new) = turn.city {
            city = json!(new);
        }
        commit.draft.environment = Arc::new(EnvironmentState {
            variables: [("city".to_owned(), city.clone())].into(),
            ..EnvironmentState::default()
        });
        commit.conflict = if turn.reject {
            ConflictPolicy::Reject
        } else {
            ConflictPolicy::Fork
        };
        let is_taken = parent.is_some_and(|parent| known[parent].is_continued);
        let published = fixture.store.session_commit(&commit).await;
        if turn.reject && is_taken {
            assert!(
                matches!(published, Err(CommitError::Conflict { run_id: Some(_) })),
                "{published:?}"
            );
            continue;
        }
        published.unwrap();
        if let Some(parent) = parent {
            known[parent].is_continued = true;
        }
        known.push(Known {
            id: commit.draft.session_id,
            parent,
            texts: all,
            start,
            city,
            is_continued: false,
        });
    }
    check_all(fixture, &known).await;
}

/// Loads every session, with what running it needs and whole.
async fn check_all(fixture: &Fixture, known: &[Known]) {
    let sessions = Sessions::new(Arc::clone(&fixture.store), 0, Arc::new(SystemClock));
    for session in known {
        let bundle = fixture.load(session.id).await;
        let texts: Vec<String> = bundle.history.iter().map(|message| message.joined_text()).collect();
        assert_eq!(texts, session.texts[session.start..]);
        assert_eq!(bundle.head.history_start, session.start as u64);
        assert_eq!(
            (bundle.history.first_index(), bundle.history.len()),
            (session.start, session.texts.len())
        );
        let whole = sessions
            .whole_bundle(&fixture.tenant, session.id)
            .await
            .unwrap()
            .unwrap();
        let texts: Vec<String> = whole.history.iter().map(|message| message.joined_text()).collect();
        assert_eq!((whole.history.first_index(), texts), (0, session.texts.clone()));
        assert_eq!(bundle.environment.variables["city"], session.city);
        assert_eq!(
            bundle.head.parent_session_id,
            session.parent.map(|parent| known[parent].id)
        );
    }
    if let Some(last) = known.last() {
        let report = fixture.verify(last.id).await;
        assert_eq!(report.faults, []);
    }
}

#[test]
fn sqlite_equals_the_model() {
    check(Engine::Sqlite, 16, turn(), 1..40, &play);
}

#[test]
fn postgres_equals_the_model() {
    check(Engine::Postgres, 6, turn(), 30..60, &play);
}
