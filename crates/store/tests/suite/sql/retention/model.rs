//! Any tree of sessions, swept and removed from in any order, equals a naive model: what is
//! retained is whole, and nothing else is left.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::json;
use store::CommitError;
use store::retention::{RemovalFigures, RetentionRules, SessionRemoval};
use store::sessions::{Commit, ConflictPolicy};
use store::threads::{ThreadExpectation, ThreadPut};
use test_support::databases::Engine;
use test_support::drafts::{now, requester_at, summary, user};
use values::clock::Timestamp;
use values::ids::SessionId;
use values::session::{BranchPosition, Bundle, EnvironmentState};

use super::{KEEP_ALL, aged};
use crate::fixtures::Fixture;
use crate::model_check::check;
use crate::sql::commit::subagents::subagent;

const THREADS: [&str; 3] = ["one", "three", "two"];

/// A session with its subagents'.
#[derive(Debug, Clone)]
struct Turn {
    /// Which session is continued, kept or not; none opens a line.
    parent: Option<Index>,
    is_tip: bool,
    hours: i64,
    /// A thread, and whether it is moved.
    thread: Option<(usize, bool)>,
    subagents: usize,
    city: Option<u8>,
    compacts: bool,
    rejects: bool,
}

#[derive(Debug, Clone)]
enum Act {
    Commit(Turn),
    Point(usize, Index),
    Remove(Index, bool),
    Sweep {
        max_age: Option<u64>,
        keep_last: Option<u32>,
        limit: u32,
    },
}

fn act() -> impl Strategy<Value = Act> {
    let commit = (
        prop::option::weighted(0.9, any::<Index>()),
        prop::bool::weighted(0.6),
        0_i64..20,
        prop::option::weighted(0.5, (0..THREADS.len(), prop::bool::weighted(0.7))),
        prop_oneof![3 => Just(0_usize), 1 => 1_usize..4],
        prop::option::weighted(0.3, 0..3_u8),
        prop::bool::weighted(0.15),
        prop::bool::weighted(0.2),
    )
        .prop_map(|(parent, is_tip, hours, thread, subagents, city, compacts, rejects)| {
            Act::Commit(Turn {
                parent,
                is_tip,
                hours,
                thread,
                subagents,
                city,
                compacts,
                rejects,
            })
        });
    let sweep =
        (prop::option::of(0_u64..20), prop::option::of(1_u32..4), 1_u32..6).prop_map(|(max_age, keep_last, limit)| {
            Act::Sweep {
                max_age,
                keep_last,
                limit,
            }
        });
    prop_oneof![
        8 => commit,
        2 => (0..THREADS.len(), any::<Index>()).prop_map(|(thread, index)| Act::Point(thread, index)),
        2 => (any::<Index>(), any::<bool>()).prop_map(|(index, descendants)| Act::Remove(index, descendants)),
        1 => sweep,
    ]
}

/// A session of the naive model.
#[derive(Debug)]
struct Known {
    bundle: Arc<Bundle>,
    parent: Option<usize>,
    starter: Option<usize>,
    hours: i64,
    /// The thread that it has moved.
    thread: Option<usize>,
    messages: usize,
    is_retained: bool,
}

#[derive(Debug)]
struct World<'a> {
    fixture: &'a Fixture,
    now: Timestamp,
    known: Vec<Known>,
    threads: BTreeMap<usize, usize>,
}

impl World<'_> {
    async fn play(&mut self, act: &Act) {
        match act {
            Act::Commit(turn) => self.commit(turn).await,
            Act::Point(thread, index) if !self.known.is_empty() => {
                self.point(*thread, index.index(self.known.len())).await;
            }
            Act::Remove(index, descendants) if !self.known.is_empty() => {
                self.remove(index.index(self.known.len()), *descendants).await;
            }
            Act::Sweep {
                max_age,
                keep_last,
                limit,
            } => self.sweep(*max_age, *keep_last, *limit).await,
            Act::Point(..) | Act::Remove(..) => (),
        }
    }

    async fn commit(&mut self, turn: &Turn) {
        let parent = match (&turn.parent, self.known.len()) {
            (None, _) | (_, 0) => None,
            (Some(_), known) if turn.is_tip => Some(known - 1),
            (Some(index), known) => Some(index.index(known)),
        };
        let base = parent.map(|parent| Arc::clone(&self.known[parent].bundle));
        let commit = self.new_commit(turn, base.as_ref());
        let published = self.fixture.store.session_commit(&commit).await;
        if parent.is_some_and(|parent| !self.known[parent].is_retained) {
            assert!(matches!(published, Err(CommitError::MissingBase)), "{published:?}");
            return;
        }
        if turn.rejects && base.as_ref().is_some_and(|base| self.is_continued(base)) {
            assert!(matches!(published, Err(CommitError::Conflict { .. })), "{published:?}");
            return;
        }
        let committed = published.unwrap();
        let index = self.known.len();
        self.known.push(Known {
            bundle: Arc::new(committed.session),
            parent,
            starter: None,
            hours: turn.hours,
            thread: turn.thread.and_then(|(thread, is_moved)| is_moved.then_some(thread)),
            messages: base.map_or(0, |base| base.history.len()) + commit.draft.new_messages().count(),
            is_retained: true,
        });
        for child in committed.children {
            let of = child.head.subagent_of.unwrap();
            let continued = child.head.parent_session_id.and(parent);
            self.known.push(Known {
                starter: self.known.iter().position(|known| known.bundle.head.session_id == of),
                parent: continued,
                hours: turn.hours,
                thread: None,
                messages: continued.map_or(0, |parent| self.known[parent].messages) + 1,
                is_retained: true,
                bundle: Arc::new(child),
            });
        }
        if let Some((thread, is_moved)) = turn.thread {
            let own = commit.draft.session_id;
            self.fixture.put_on_thread(own, THREADS[thread], is_moved).await;
            if is_moved {
                self.point(thread, index).await;
            }
        }
    }

    fn new_commit(&self, turn: &Turn, base: Option<&Arc<Bundle>>) -> Commit {
        let mut messages = vec![user("question"), user("answer")];
        let (start, end) = base.map_or((0, 0), |base| (base.head.history_start, base.head.message_count));
        if turn.compacts && end > start {
            messages.push(summary("all that", start, end));
        }
        let mut commit = self.fixture.commit_of(base, messages);
        if let Some(city) = turn.city {
            commit.draft.environment = Arc::new(EnvironmentState {
                variables: [("city".to_owned(), json!(city))].into(),
                ..EnvironmentState::default()
            });
        }
        if turn.rejects {
            commit.conflict = ConflictPolicy::Reject;
        }
        // The second subagent continues the base, if there is one, and the third belongs to the
        // second.
        let own = commit.draft.session_id;
        for number in 0..turn.subagents {
            let starter = if number == 2 {
                commit.children[1].session_id
            } else {
                own
            };
            let continued = base.filter(|_| number == 1);
            let child = subagent(&commit, starter, continued, &["task"]);
            commit.children.push(child);
        }
        aged(commit, self.now, turn.hours)
    }

    /// Whether the place after a session on its branch is taken.
    fn is_continued(&self, base: &Bundle) -> bool {
        let next = BranchPosition {
            position: base.head.position.position + 1,
            ..base.head.position
        };
        let mut stored = (0..self.known.len()).filter(|index| self.is_stored(*index));
        stored.any(|index| self.known[index].bundle.head.position == next)
    }

    async fn point(&mut self, thread: usize, index: usize) {
        let name = THREADS[thread].parse().unwrap();
        let session_id = self.known[index].bundle.head.session_id;
        let put = self
            .fixture
            .store
            .thread_put(
                &self.fixture.tenant,
                &name,
                session_id,
                ThreadExpectation::Anything,
                self.now,
            )
            .await
            .unwrap();
        if self.known[index].is_retained {
            assert!(matches!(put, ThreadPut::Moved(_)), "{put:?}");
            self.threads.insert(thread, index);
        } else {
            assert_eq!(put, ThreadPut::NoSession);
        }
    }

    async fn remove(&mut self, index: usize, descendants: bool) {
        let session_id = self.known[index].bundle.head.session_id;
        let removal = self
            .fixture
            .store
            .session_remove(&self.fixture.tenant, session_id, descendants, &requester_at(self.now))
            .await
            .unwrap();
        let family = self.family(index);
        let tree = self.tree(index);
        let others = tree.iter().any(|index| !family.contains(index));
        let going = if descendants { tree } else { family };
        let in_use = going
            .iter()
            .any(|index| self.threads.values().any(|used| used == index));
        if !self.known[index].is_retained {
            assert_eq!(removal, SessionRemoval::NotFound);
        } else if in_use {
            assert_eq!(removal, SessionRemoval::InUse);
        } else if others && !descendants {
            assert_eq!(removal, SessionRemoval::HasDescendants);
        } else {
            let SessionRemoval::Removed(figures) = removal else {
                panic!("{removal:?}")
            };
            assert_eq!(figures.sessions, going.len() as u64);
            self.forget(&going);
        }
    }

    async fn sweep(&mut self, max_age: Option<u64>, keep_last: Option<u32>, limit: u32) {
        let rules = RetentionRules {
            max_age: max_age.map(|hours| Duration::from_secs(hours * 3_600)),
            keep_last,
            ..KEEP_ALL
        };
        let planned = self.fixture.store.retention_plan(rules, self.now).await.unwrap();
        let swept = self.fixture.sweep(rules, self.now, limit).await;
        assert_eq!(planned, swept);
        let going = self.going(max_age, keep_last);
        assert_eq!(swept.sessions, going.len() as u64);
        self.forget(&going);
        let again = self.fixture.sweep(rules, self.now, limit).await;
        assert_eq!(again, RemovalFigures::default());
    }

    /// The sessions that the rules remove.
    fn going(&self, max_age: Option<u64>, keep_last: Option<u32>) -> BTreeSet<usize> {
        let mut going = BTreeSet::new();
        for (index, known) in self.known.iter().enumerate() {
            if !known.is_retained || known.starter.is_some() {
                continue;
            }
            let newer = self.known.iter().skip(index + 1);
            let newer =
                newer.filter(|other| other.is_retained && other.thread == known.thread && other.thread.is_some());
            let nth = u32::try_from(newer.count()).unwrap();
            let is_among_last = known.thread.is_some() && keep_last.is_some_and(|keep| nth < keep);
            let is_overtaken = known.thread.is_some() && keep_last.is_some_and(|keep| nth >= keep);
            let is_aged = max_age.is_some_and(|hours| known.hours > i64::try_from(hours.max(1)).unwrap());
            let is_old_enough = known.hours > 1;
            let goes = (is_aged && !is_among_last) || (is_overtaken && is_old_enough);
            let family = self.family(index);
            if goes
                && !family
                    .iter()
                    .any(|index| self.threads.values().any(|used| used == index))
            {
                going.extend(family);
            }
        }
        going
    }

    /// A kept session and its subagents, and theirs.
    fn family(&self, top: usize) -> BTreeSet<usize> {
        let mut family = BTreeSet::from([top]);
        // Starters are known before those that they start.
        for (index, known) in self.known.iter().enumerate() {
            if known.is_retained && known.starter.is_some_and(|starter| family.contains(&starter)) {
                family.insert(index);
            }
        }
        family
    }

    /// All kept sessions that would go with one: its family, and what continues any of it.
    fn tree(&self, top: usize) -> BTreeSet<usize> {
        let mut tree = BTreeSet::from([top]);
        for (index, known) in self.known.iter().enumerate() {
            let above = [known.parent, known.starter.filter(|_| known.is_retained)];
            if above.into_iter().flatten().any(|above| tree.contains(&above)) {
                tree.insert(index);
            }
        }
        tree.retain(|index| self.known[*index].is_retained);
        tree
    }

    fn forget(&mut self, going: &BTreeSet<usize>) {
        for index in going {
            self.known[*index].is_retained = false;
        }
    }

    /// Whether the messages of a session are stored: it is kept, or a kept one continues it.
    fn is_stored(&self, index: usize) -> bool {
        let continued = (index + 1..self.known.len()).filter(|other| self.known[*other].parent == Some(index));
        self.known[index].is_retained || continued.into_iter().any(|other| self.is_stored(other))
    }

    async fn check(&self) {
        let retained: Vec<&Known> = self.known.iter().filter(|known| known.is_retained).collect();
        for known in &retained {
            self.fixture.assert_whole(&known.bundle, known.messages).await;
            let mut line: Vec<(SessionId, bool)> = Vec::new();
            let mut next = Some(*known);
            while let Some(ancestor) = next {
                line.push((ancestor.bundle.head.session_id, ancestor.is_retained));
                next = ancestor.parent.map(|parent| &self.known[parent]);
            }
            assert_eq!(self.fixture.line(known.bundle.head.session_id).await, line);
        }
        for known in self.known.iter().filter(|known| !known.is_retained) {
            let id = known.bundle.head.session_id;
            let found = self.fixture.store.bundle_load(&self.fixture.tenant, id).await.unwrap();
            assert_eq!(found, None);
        }
        let stored: Vec<usize> = (0..self.known.len()).filter(|index| self.is_stored(*index)).collect();
        let position = |index: &usize| self.known[*index].bundle.head.position;
        let branches: BTreeSet<_> = stored.iter().map(|index| position(index).branch_id).collect();
        let states: BTreeSet<_> = retained
            .iter()
            .flat_map(|known| [known.bundle.head.environment_hash, known.bundle.head.context_hash])
            .map(|hash| hash.to_string())
            .collect();
        let runs = retained.iter().filter(|known| known.starter.is_none()).count();
        for (table, rows) in [
            ("sessions", retained.len()),
            ("removed_sessions", stored.len() - retained.len()),
            ("history_segments", stored.len()),
            ("history_branches", branches.len()),
            ("states", states.len()),
            ("runs", runs),
        ] {
            assert_eq!(self.fixture.count(table).await, i64::try_from(rows).unwrap(), "{table}");
        }
    }
}

async fn play(fixture: &Fixture, acts: &[Act]) {
    let mut world = World {
        fixture,
        now: now(),
        known: Vec::new(),
        threads: BTreeMap::new(),
    };
    for act in acts {
        world.play(act).await;
    }
    world.sweep(None, None, 3).await;
    world.check().await;
    while fixture.store.tenant_remove(&fixture.tenant, 50, None).await.unwrap() > 0 {}
}

#[test]
fn sqlite_retains_what_the_model_retains() {
    check(Engine::Sqlite, 24, act(), 1..40, &play);
}

#[test]
fn postgres_retains_what_the_model_retains() {
    check(Engine::Postgres, 8, act(), 20..50, &play);
}
