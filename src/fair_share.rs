//! An amount that tenants share fairly, such as bytes in flight or concurrent reads.
//!
//! A tenant that already holds something gets no more than it leaves for others: alone, half of the
//! total. Among waiting tenants, the one that holds least goes next. Of equals, the one whose last
//! turn is longest ago goes next. An amount of up to an eighth of the total may pass a larger one
//! that does not fit, until as much as the total has passed it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::tenant::TenantId;

/// Up to what part of the total an amount may pass another one that does not fit.
const SMALL: usize = 8;

/// An amount that tenants share.
#[derive(Debug)]
pub struct FairShare {
    total: usize,
    state: Mutex<State>,
}

/// What a tenant has taken; dropping it gives it back.
#[derive(Debug)]
#[must_use = "a share is given back when it is dropped"]
pub struct Share {
    of: Arc<FairShare>,
    tenant: TenantId,
    amount: usize,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    /// How much has passed the one that goes next since the last one went.
    passed: usize,
    /// Counts up with each turn.
    turns: u64,
    /// Those that have taken something, or wait.
    tenants: HashMap<TenantId, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    taken: usize,
    /// When the tenant had its turn last, or came.
    turn: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    amount: usize,
    grant: oneshot::Sender<Share>,
}

/// A caller that waits. Declared before the receiver, so that it is dropped after it and finds the
/// channel closed.
struct Waiting<'a> {
    of: &'a Arc<FairShare>,
    tenant: &'a TenantId,
}

impl FairShare {
    /// Shares an amount.
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            state: Mutex::default(),
        })
    }

    /// Waits until the tenant may take so much. More than half of the total counts as half, so that
    /// everything fits. An amount of 0 is granted at once.
    pub async fn take(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Share {
        if amount == 0 {
            return self.share(tenant, 0);
        }
        let amount = amount.min(self.most());
        let waiting = Waiting { of: self, tenant };
        let (grant, granted) = oneshot::channel();
        let waiter = Waiter { amount, grant };
        self.state.lock().queue(tenant).waiting.push_back(waiter);
        self.grant();
        let share = granted.await;
        drop(waiting);
        // The queue drops no waiter that is still there; without a share it would merely go
        // uncounted.
        share.unwrap_or_else(|_| self.share(tenant, 0))
    }

    /// Takes so much if there is room now, and no other caller goes first.
    pub fn try_take(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Option<Share> {
        self.take(tenant, amount).now_or_never()
    }

    /// Returns how much is taken.
    pub fn taken(&self) -> usize {
        self.state.lock().taken
    }

    /// Returns what a tenant may take where no other tenant has taken anything.
    fn most(&self) -> usize {
        (self.total / 2).max(1)
    }

    fn share(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Share {
        Share {
            of: Arc::clone(self),
            tenant: tenant.clone(),
            amount,
        }
    }

    /// Grants what waits and fits.
    fn grant(self: &Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            let Some((tenant, waiter)) = state.next(self.total) else {
                return;
            };
            drop(state);
            // A caller that has gone gives it back, which locks the state.
            drop(waiter.grant.send(self.share(&tenant, waiter.amount)));
        }
    }

    fn give_back(self: &Arc<Self>, tenant: &TenantId, amount: usize) {
        let mut state = self.state.lock();
        state.taken -= amount;
        if let Some(queue) = state.tenants.get_mut(tenant) {
            queue.taken -= amount;
        }
        state.forget_idle(tenant);
        drop(state);
        self.grant();
    }
}

impl State {
    /// Takes out the waiter that goes next, and counts what it takes. One that does not fit keeps
    /// the others waiting that want much as well; those that want little pass it, until so much has
    /// passed that it would wait for ever.
    fn next(&mut self, total: usize) -> Option<(TenantId, Waiter)> {
        let taken = self.taken;
        let left = total.saturating_sub(taken);
        let has_room = |amount: usize| taken == 0 || taken + amount <= total;
        let ready = self.tenants.iter_mut().filter_map(|(tenant, queue)| {
            while queue.waiting.front().is_some_and(|waiter| waiter.grant.is_closed()) {
                queue.waiting.pop_front();
            }
            let amount = queue.waiting.front()?.amount;
            let fits = queue.taken == 0 || queue.taken + 2 * amount <= left;
            fits.then_some((amount, tenant, queue))
        });
        let mut ready: Vec<_> = ready.collect();
        ready.sort_by_key(|(.., queue)| (queue.taken, queue.turn));
        let mut ready = ready.into_iter();
        let goes = |(amount, ..): &(usize, &TenantId, &mut Queue)| has_room(*amount);
        let first = ready.next()?;
        let (amount, tenant, queue) = if goes(&first) {
            self.passed = 0;
            first
        } else {
            let may_pass = |amount: usize| amount * SMALL <= total && self.passed + amount <= total;
            let passing = ready.find(|one| may_pass(one.0) && goes(one))?;
            self.passed += passing.0;
            passing
        };
        let (tenant, waiter) = (tenant.clone(), queue.waiting.pop_front()?);
        self.turns += 1;
        queue.turn = self.turns;
        queue.taken += amount;
        self.taken += amount;
        Some((tenant, waiter))
    }

    /// Returns what is known of a tenant. One that comes has its turn after those that are there.
    fn queue(&mut self, tenant: &TenantId) -> &mut Queue {
        let turn = self.turns;
        self.tenants.entry(tenant.clone()).or_insert_with(|| Queue {
            turn,
            ..Queue::default()
        })
    }

    fn forget_idle(&mut self, tenant: &TenantId) {
        let is_idle = |queue: &Queue| queue.taken == 0 && queue.waiting.is_empty();
        if self.tenants.get(tenant).is_some_and(is_idle) {
            self.tenants.remove(tenant);
        }
    }
}

impl Share {
    /// Returns who has taken it.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Returns how much it is.
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Changes the amount to what is needed after all, without waiting: others wait for what is
    /// taken beyond the total.
    pub fn set(&mut self, amount: usize) {
        let before = std::mem::replace(&mut self.amount, amount);
        {
            let mut state = self.of.state.lock();
            state.taken = state.taken + amount - before;
            let queue = state.queue(&self.tenant);
            queue.taken = queue.taken + amount - before;
        }
        self.of.grant();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.of.give_back(&self.tenant, self.amount);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.of.state.lock();
        if let Some(queue) = state.tenants.get_mut(self.tenant) {
            queue.waiting.retain(|waiter| !waiter.grant.is_closed());
        }
        state.forget_idle(self.tenant);
        drop(state);
        // Those behind it may fit.
        self.of.grant();
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn tenant(name: &str) -> TenantId {
        name.parse().unwrap()
    }

    #[tokio::test]
    async fn a_tenant_takes_no_more_than_it_leaves_to_others() {
        let (shares, a, b) = (FairShare::new(8), tenant("a"), tenant("b"));
        let mut held = Vec::new();
        for _ in 0..4 {
            held.push(shares.take(&a, 1).now_or_never().unwrap());
        }
        assert!(shares.take(&a, 1).now_or_never().is_none());
        // Two of the four that are left, one of the two, and the last one.
        for tenant in [&b, &tenant("c")] {
            while let Some(share) = shares.take(tenant, 1).now_or_never() {
                held.push(share);
            }
        }
        assert_eq!((shares.taken(), shares.state.lock().tenants[&b].taken), (7, 2));
        held.push(shares.take(&tenant("d"), 1).now_or_never().unwrap());
        held.clear();
        assert_eq!((shares.taken(), shares.state.lock().tenants.len()), (0, 0));
        // What never fits counts as all that one may take.
        let all = shares.take(&a, 1_000).now_or_never().unwrap();
        assert_eq!(all.amount, 4);
    }

    #[tokio::test]
    async fn the_tenant_that_has_taken_least_goes_next() {
        let (shares, a, b, c) = (FairShare::new(4), tenant("a"), tenant("b"), tenant("c"));
        let (one, two) = (shares.take(&a, 1).await, shares.take(&a, 1).await);
        let other = shares.take(&b, 2).await;
        let mut waiting: Vec<_> = (0..10).map(|_| Box::pin(shares.take(&a, 1))).collect();
        for first in &mut waiting {
            assert!(first.now_or_never().is_none());
        }
        let mut late = Box::pin(shares.take(&c, 2));
        assert!((&mut late).now_or_never().is_none());
        // There is room for one of the first tenant's; the last comer waits for two, and is next.
        drop(one);
        assert!((&mut waiting[0]).now_or_never().is_none());
        drop(other);
        let late = (&mut late).now_or_never().expect("it is next");
        drop((late, two));
        let granted: Vec<_> = waiting.iter_mut().filter_map(FutureExt::now_or_never).collect();
        assert_eq!(granted.len(), 2);
    }

    #[tokio::test]
    async fn tenants_that_always_wait_have_their_turns_one_after_another() {
        let shares = FairShare::new(2);
        let request = |name: &'static str| {
            let shares = Arc::clone(&shares);
            async move { (name, shares.take(&tenant(name), 1).await) }.boxed()
        };
        let names = ["a", "b", "c", "d", "e"];
        let mut waiting: Vec<_> = names.repeat(2).into_iter().map(request).collect();
        let mut held = VecDeque::new();
        let mut turns: HashMap<_, usize> = HashMap::new();
        for _ in 0..50 {
            for mut one in std::mem::take(&mut waiting) {
                match (&mut one).now_or_never() {
                    Some((name, share)) => {
                        *turns.entry(name).or_default() += 1;
                        held.push_back(share);
                        waiting.push(request(name));
                    }
                    None => waiting.push(one),
                }
            }
            held.pop_front();
        }
        let (least, most) = (turns.values().min(), turns.values().max());
        assert_eq!(turns.len(), names.len(), "{turns:?}");
        assert!(most.unwrap() - least.unwrap() <= 2, "{turns:?}");
    }

    #[tokio::test]
    async fn callers_that_leave_take_nothing() {
        let (shares, a) = (FairShare::new(2), tenant("a"));
        let held = shares.take(&a, 1).await;
        for _ in 0..100 {
            assert!(shares.take(&a, 1).now_or_never().is_none());
        }
        assert_eq!(shares.state.lock().tenants[&a].waiting.len(), 0);
        // One was granted its share and did not take it any more.
        let mut granted = Box::pin(shares.take(&a, 1));
        assert!((&mut granted).now_or_never().is_none());
        drop(held);
        assert_eq!(shares.taken(), 1);
        drop(granted);
        assert_eq!((shares.taken(), shares.state.lock().tenants.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_caller_behind_one_that_leaves_goes_on() {
        let (shares, a, b) = (FairShare::new(16), tenant("a"), tenant("b"));
        let held = shares.take(&b, 8).await;
        let other = shares.take(&a, 1).await;
        let mut large = Box::pin(shares.take(&a, 8));
        assert!((&mut large).now_or_never().is_none());
        let mut small = Box::pin(shares.take(&a, 1));
        assert!((&mut small).now_or_never().is_none());
        drop(large);
        assert!((&mut small).now_or_never().is_some());
        drop((held, other));
    }

    #[tokio::test]
    async fn small_amounts_pass_a_large_one_that_finds_no_room() {
        let (shares, a, b, c, d) = (FairShare::new(256), tenant("a"), tenant("b"), tenant("c"), tenant("d"));
        let slow = shares.take(&a, 128).await;
        let other = shares.take(&b, 20).await;
        let mut large = Box::pin(shares.take(&c, 128));
        assert!((&mut large).now_or_never().is_none());
        let passing = shares.take(&d, 32).now_or_never().expect("it is small");
        assert!(shares.take(&tenant("e"), 33).now_or_never().is_none());
        drop((slow, passing));
        assert!((&mut large).now_or_never().is_some());
        drop(other);
    }

    #[tokio::test]
    async fn endless_small_amounts_do_not_starve_a_large_one() {
        let shares = FairShare::new(256);
        let small = |number: usize| shares.take(&tenant(&format!("t{number}")), 32).now_or_never();
        let mut held: VecDeque<_> = (0..7).map(|number| small(number).unwrap()).collect();
        let patient = tenant("patient");
        let mut large = Box::pin(shares.take(&patient, 40));
        assert!((&mut large).now_or_never().is_none());
        // As much as the total passes it; what comes then waits behind it.
        let mut passed = 0;
        while let Some(share) = small(7 + passed) {
            held.push_back(share);
            drop(held.pop_front());
            passed += 1;
            assert!(passed < 100, "the large one waits for ever");
        }
        // One that came in the same turn may go first as well.
        assert!([8, 9].contains(&passed), "{passed}");
        drop(held.pop_front());
        assert!((&mut large).now_or_never().is_some());
        assert_eq!(shares.state.lock().passed, 0);
    }

    #[tokio::test]
    async fn others_wait_for_a_share_that_turns_out_larger() {
        let (shares, a, b) = (FairShare::new(10), tenant("a"), tenant("b"));
        let mut guess = shares.take(&a, 1).await;
        guess.set(30);
        assert!(shares.take(&b, 1).now_or_never().is_none());
        drop(shares.take(&b, 0).now_or_never().unwrap());
        guess.set(3);
        assert!(shares.take(&b, 1).now_or_never().is_some());
        drop(guess);
        assert_eq!(shares.taken(), 0);
    }
}
