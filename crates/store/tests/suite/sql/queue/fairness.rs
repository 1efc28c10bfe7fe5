//! The order of the queue: tenants take turns, and each turn goes to the tenant's run of the
//! highest priority. The store is compared with the order as the contract states it.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use store::queue::{Lease, NewQueuedRun};
use test_support::drafts::tenant;
use values::ids::RunId;

use super::fixtures::{ids, queued_run};
use crate::fixtures::Fixture;

on_both_engines!(
    tenants_take_turns_regardless_of_their_load,
    a_late_tenant_starts_at_the_turn_of_the_others,
    a_tenant_that_floods_with_a_high_priority_takes_no_turn_of_another,
    a_priority_counts_among_the_runs_of_its_tenant,
    runs_outdone_by_later_ones_keep_their_order,
    higher_levels_go_first,
    released_runs_come_before_later_ones,
    workers_at_once_share_out_every_run,
    any_course_of_events_follows_the_order,
);

/// A run that waits: its level, priority, turn and tenant.
#[derive(Debug, Clone)]
struct Waiting {
    level: i16,
    priority: i16,
    turn: i64,
    tenant: String,
}

/// The queue as the contract describes it.
#[derive(Debug, Default)]
struct Model {
    waiting: BTreeMap<RunId, Waiting>,
    leased: BTreeMap<RunId, Waiting>,
}

impl Model {
    /// The turn of a run follows those of its tenant that wait, and is no earlier than the first
    /// that waits.
    fn enqueue(&mut self, run: &NewQueuedRun) {
        let of_level = || self.waiting.values().filter(|other| other.level == run.level);
        let own = of_level().filter(|other| other.tenant == run.tenant.as_str());
        let after_own = own.map(|other| other.turn + 1).max();
        let first = of_level().map(|other| other.turn).min().unwrap_or(1);
        let waiting = Waiting {
            level: run.level,
            priority: run.priority,
            turn: after_own.unwrap_or(first).max(first),
            tenant: run.tenant.as_str().to_owned(),
        };
        self.waiting.insert(run.summary.run_id, waiting);
    }

    /// The next turns, and the runs of their tenants that get them.
    fn lease(&mut self, limit: usize) -> Vec<RunId> {
        let mut slots: Vec<(i16, i64, RunId, String)> = self
            .waiting
            .iter()
            .map(|(id, run)| (-run.level, run.turn, *id, run.tenant.clone()))
            .collect();
        slots.sort_unstable();
        slots.truncate(limit);
        let mut leased = Vec::new();
        for (level, turn, _, tenant) in slots {
            let own = |run: &&mut Waiting| run.tenant == tenant && run.level == -level;
            // The turn goes to the best run of the tenant, in exchange for its own turn.
            let (best, _) = self
                .waiting
                .iter()
                .filter(|(_, run)| run.tenant == tenant && run.level == -level)
                .min_by_key(|(id, run)| (-run.priority, **id))
                .unwrap();
            let best = *best;
            let mut run = self.waiting.remove(&best).unwrap();
            if run.turn != turn {
                let outdone = self.waiting.values_mut().filter(own).find(|other| other.turn == turn);
                outdone.unwrap().turn = run.turn;
                run.turn = turn;
            }
            leased.push((level, turn, best));
            self.leased.insert(best, run);
        }
        leased.sort_unstable();
        leased.into_iter().map(|(.., id)| id).collect()
    }

    /// A run that is given back has its turn again, or the first that waits if that is earlier.
    fn release(&mut self, id: RunId) {
        let mut run = self.leased.remove(&id).unwrap();
        let others = self.waiting.values().filter(|other| other.level == run.level);
        if let Some(first) = others.map(|other| other.turn).min() {
            run.turn = run.turn.min(first);
        }
        self.waiting.insert(id, run);
    }
}

/// The queue and its model, side by side.
struct Both {
    fixture: Fixture,
    model: Model,
    leases: BTreeMap<RunId, Lease>,
}

impl Both {
    fn new(fixture: Fixture) -> Self {
        Self {
            fixture,
            model: Model::default(),
            leases: BTreeMap::new(),
        }
    }

    async fn enqueue(&mut self, tenant_name: &str, priority: i16) -> RunId {
        self.enqueue_at(0, tenant_name, priority).await
    }

    async fn enqueue_at(&mut self, level: i16, tenant_name: &str, priority: i16) -> RunId {
        let mut run = queued_run(&tenant(tenant_name));
        (run.level, run.priority) = (level, priority);
        self.model.enqueue(&run);
        self.fixture.enqueue(&run).await;
        run.summary.run_id
    }

    /// Leases runs, which must be those that the model says.
    async fn lease(&mut self, limit: u32) -> Vec<RunId> {
        let leased = self.fixture.lease(limit).await;
        let order = ids(&leased);
        assert_eq!(order, self.model.lease(limit as usize));
        self.leases
            .extend(leased.into_iter().map(|run| (run.lease.run_id, run.lease)));
        order
    }

    async fn release(&mut self, id: RunId) {
        let lease = self.leases.remove(&id).unwrap();
        assert!(self.fixture.store.lease_release(&lease).await.unwrap());
        self.model.release(id);
    }
}

async fn tenants_take_turns_regardless_of_their_load(fixture: Fixture) {
    let mut both = Both::new(fixture);
    let mut greedy = Vec::new();
    for _ in 0..20 {
        greedy.push(both.enqueue("greedy", 0).await);
    }
    let modest = [both.enqueue("modest", 0).await, both.enqueue("modest", 0).await];
    let other = both.enqueue("other", 0).await;
    let order = [greedy[0], modest[0], other, greedy[1], modest[1], greedy[2], greedy[3]];
    for expected in order {
        assert_eq!(both.lease(1).await, [expected]);
    }
    assert_eq!(both.lease(100).await, greedy[4..]);
}

async fn a_late_tenant_starts_at_the_turn_of_the_others(fixture: Fixture) {
    let mut both = Both::new(fixture);
    let mut early = Vec::new();
    for _ in 0..6 {
        early.push(both.enqueue("early", 0).await);
    }
    assert_eq!(both.lease(3).await, early[..3]);
    let late = [both.enqueue("late", 0).await, both.enqueue("late", 0).await];
    // It is not behind all that wait, and it does not catch up on the turns before it came.
    assert_eq!(both.lease(10).await, [early[3], late[0], early[4], late[1], early[5]]);
    let next = [both.enqueue("late", 0).await, both.enqueue("early", 0).await];
    assert_eq!(both.lease(10).await, next);
}

async fn a_tenant_that_floods_with_a_high_priority_takes_no_turn_of_another(fixture: Fixture) {
    let mut both = Both::new(fixture);
    let mut flood = Vec::new();
    for _ in 0..30 {
        flood.push(both.enqueue("flood", 100).await);
    }
    assert_eq!(both.lease(2).await, flood[..2]);
    let modest = both.enqueue("modest", -100).await;
    // It goes on with runs of the highest priority, one for each that is leased.
    let mut order = Vec::new();
    for _ in 0..3 {
        both.enqueue("flood", 100).await;
        order.extend(both.lease(1).await);
    }
    assert_eq!(order, [flood[2], modest, flood[3]]);
}

async fn a_priority_counts_among_the_runs_of_its_tenant(fixture: Fixture) {
    let mut both = Both::new(fixture);
    let usual = [both.enqueue("a", 0).await, both.enqueue("a", 0).await];
    let other = [both.enqueue("b", 0).await, both.enqueue("b", 0).await];
    let (low, high) = (both.enqueue("a", -5).await, both.enqueue("a", 9).await);
    // The four turns of the one tenant are those that its runs were given as they came.
    for expected in [high, other[0], usual[0], other[1], usual[1], low] {
        assert_eq!(both.lease(1).await, [expected]);
    }
}

async fn runs_outdone_by_later_ones_keep_their_order(fixture: Fixture) {
    let mut both = Both::new(fixture);
    let mut usual = Vec::new();
    for _ in 0..4 {
        usual.push(both.enqueue("a", 0).await);
    }
    let high = [both.enqueue("a", 1).await, both.enqueue("a", 2).await];
    assert_eq!(both.lease(1).await, [high[1]]);
    assert_eq!(both.lease(2).await, [high[0], usual[0]]);
    assert_eq!(both.lease(10).await, usual[1..]);
}

async fn higher_levels_go_first(fixture: Fixture) {
    let mut both = Both::new(fixture);
    let usual = [
        both.enqueue("a", 0).await,
        both.enqueue("a", 0).await,
        both.enqueue("b", 0).await,
    ];
    let low = both.enqueue_at(-5, "c", -5).await;
    let high = [
        both.enqueue_at(9, "a", 9).await,
        both.enqueue_at(9, "a", 9).await,
        both.enqueue_at(9, "b", 9).await,
    ];
    let order = [high[0], high[2], high[1], usual[0], usual[2], usual[1], low];
    assert_eq!(both.lease(10).await, order);
}

async fn workers_at_once_share_out_every_run(fixture: Fixture) {
    let mut expected = BTreeSet::new();
    for number in 0..60 {
        let mut run = queued_run(&tenant(["a", "b", "c"][number % 3]));
        run.priority = [0, 7, -7, 100][number % 4];
        fixture.enqueue(&run).await;
        expected.insert(run.summary.run_id);
    }
    let mut leased = Vec::new();
    while leased.len() < expected.len() {
        let round = join_all((0..6).map(|_| fixture.lease(3))).await;
        let found = round.iter().flat_map(|runs| ids(runs));
        let before = leased.len();
        leased.extend(found);
        assert!(leased.len() > before, "{leased:?}");
    }
    assert_eq!(leased.iter().copied().collect::<BTreeSet<_>>(), expected);
    assert_eq!(leased.len(), expected.len());
}

async fn released_runs_come_before_later_ones(fixture: Fixture) {
    let mut both = Both::new(fixture);
    let mut early = Vec::new();
    for _ in 0..4 {
        early.push(both.enqueue("early", 0).await);
    }
    assert_eq!(both.lease(4).await, early);
    // The queue was empty, so the turns begin anew.
    let late = [both.enqueue("late", 0).await, both.enqueue("late", 0).await];
    for id in [early[3], early[2]] {
        both.release(id).await;
    }
    assert_eq!(both.lease(10).await, [early[2], early[3], late[0], late[1]]);
}

async fn any_course_of_events_follows_the_order(fixture: Fixture) {
    let mut both = Both::new(fixture);
    // A fixed sequence without a pattern: a linear congruential generator.
    let mut seed: u64 = 7;
    let mut draw = |sides: u64| {
        seed = seed
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % sides
    };
    for _ in 0..220 {
        match draw(8) {
            0..=3 => {
                let name = ["a", "b", "c"][usize::try_from(draw(3)).unwrap()];
                let level = [0, 0, 5][usize::try_from(draw(3)).unwrap()];
                let priority = [0, 0, 9, -9][usize::try_from(draw(4)).unwrap()];
                both.enqueue_at(level, name, priority).await;
            }
            4..=5 => drop(both.lease(u32::try_from(draw(3)).unwrap() + 1).await),
            _ => {
                let held: Vec<RunId> = both.leases.keys().copied().collect();
                if let Some(count) = u64::try_from(held.len()).ok().filter(|count| *count > 0) {
                    both.release(held[usize::try_from(draw(count)).unwrap()]).await;
                }
            }
        }
    }
    both.lease(1000).await;
    assert_eq!(both.fixture.store.queue_length(10).await.unwrap(), 0);
}
