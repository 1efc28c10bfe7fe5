//! The order of the queue: priorities first, then tenants take turns. The store is compared with the order as the contract states it.

use std::collections::BTreeMap;

use agent_runtime::ids::RunId;
use agent_runtime::store::{Lease, NewQueuedRun};

use super::fixtures::{ids, queued_run};
use crate::store::fixtures::{Fixture, tenant};

on_both_engines!(
    tenants_take_turns_whatever_they_ask_for,
    a_late_comer_goes_on_from_where_the_others_are,
    higher_priorities_go_first,
    what_is_given_back_goes_before_what_came_later,
    any_course_of_events_keeps_to_the_order,
);

/// A run that waits: its priority, turn and tenant.
#[derive(Debug, Clone)]
struct Waiting {
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
    /// A run's turn follows those of its tenant that wait, and is no earlier than the first that waits.
    fn enqueue(&mut self, run: &NewQueuedRun) {
        let of_priority = || self.waiting.values().filter(|other| other.priority == run.priority);
        let own = of_priority().filter(|other| other.tenant == run.tenant.as_str());
        let after_own = own.map(|other| other.turn + 1).max();
        let first = of_priority().map(|other| other.turn).min().unwrap_or(1);
        let waiting = Waiting {
            priority: run.priority,
            turn: after_own.unwrap_or(first).max(first),
            tenant: run.tenant.as_str().to_owned(),
        };
        self.waiting.insert(run.summary.run_id, waiting);
    }

    fn lease(&mut self, limit: usize) -> Vec<RunId> {
        let mut order: Vec<(i16, i64, RunId)> = self
            .waiting
            .iter()
            .map(|(id, run)| (-run.priority, run.turn, *id))
            .collect();
        order.sort_unstable();
        let leased: Vec<RunId> = order.into_iter().take(limit).map(|(.., id)| id).collect();
        for id in &leased {
            let run = self.waiting.remove(id).unwrap();
            self.leased.insert(*id, run);
        }
        leased
    }

    /// A run that is given back has its turn again, or the first that waits if that is earlier.
    fn release(&mut self, id: RunId) {
        let mut run = self.leased.remove(&id).unwrap();
        let others = self.waiting.values().filter(|other| other.priority == run.priority);
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
        let mut run = queued_run(&tenant(tenant_name));
        run.priority = priority;
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

async fn tenants_take_turns_whatever_they_ask_for(fixture: Fixture) {
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

async fn a_late_comer_goes_on_from_where_the_others_are(fixture: Fixture) {
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

async fn higher_priorities_go_first(fixture: Fixture) {
    let mut both = Both::new(fixture);
    let usual = [
        both.enqueue("a", 0).await,
        both.enqueue("a", 0).await,
        both.enqueue("b", 0).await,
    ];
    let low = both.enqueue("c", -5).await;
    let high = [
        both.enqueue("a", 9).await,
        both.enqueue("a", 9).await,
        both.enqueue("b", 9).await,
    ];
    let order = [high[0], high[2], high[1], usual[0], usual[2], usual[1], low];
    assert_eq!(both.lease(10).await, order);
}

async fn what_is_given_back_goes_before_what_came_later(fixture: Fixture) {
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

async fn any_course_of_events_keeps_to_the_order(fixture: Fixture) {
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
                both.enqueue(name, [0, 0, 5][usize::try_from(draw(3)).unwrap()]).await;
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
