//! An amount that tenants share fairly, such as bytes in flight or concurrent reads.
//!
//! A tenant that already holds a share gets another one only if the amount left for others is at
//! least the amount that the tenant then holds. So a tenant alone gets at most half of the total.
//! Among waiting tenants, the tenant that holds least goes next. Among equals, the tenant with the
//! oldest last turn goes next. If the next request does not fit, smaller ones may overtake it: each
//! of up to an eighth of the total, and together up to the total.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures_util::FutureExt as _;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use values::tenant::TenantId;

/// Requests of up to one part in `SMALL` of the total may overtake one that does not fit.
const SMALL: usize = 8;

/// An amount that tenants share.
#[derive(Debug)]
pub struct FairShare {
    total: usize,
    state: Mutex<State>,
}

/// An amount that a tenant has taken. Dropping the share returns the amount.
#[derive(Debug)]
#[must_use = "a share is given back when it is dropped"]
pub struct Share {
    pool: Arc<FairShare>,
    tenant: TenantId,
    amount: usize,
}

#[derive(Debug, Default)]
struct State {
    taken: usize,
    /// The sum of the amounts that have overtaken the next request.
    passed: usize,
    /// Counts up with each turn.
    turns: u64,
    /// The tenants that hold a share or wait for one.
    tenants: HashMap<TenantId, Queue>,
}

#[derive(Debug, Default)]
struct Queue {
    taken: usize,
    /// The number of the tenant's last turn; at first, the number of the last turn of any tenant.
    turn: u64,
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    amount: usize,
    grant: oneshot::Sender<Share>,
}

/// A caller that waits. A local of this type is declared before the receiver of the channel. So the
/// receiver is dropped first, and `drop` finds the channel closed.
struct Waiting<'a> {
    pool: &'a Arc<FairShare>,
    tenant: &'a TenantId,
}

impl FairShare {
    /// Creates an amount to share, with the given total.
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self {
            total,
            state: Mutex::default(),
        })
    }

    /// Waits until the tenant may take an amount. Takes at most half of the total, so that each
    /// request can be granted. Grants an amount of 0 at once.
    pub async fn take(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Share {
        if amount == 0 {
            return self.share(tenant, 0);
        }
        let amount = amount.min(self.most());
        let waiting = Waiting { pool: self, tenant };
        let (grant, granted) = oneshot::channel();
        let waiter = Waiter { amount, grant };
        self.state.lock().queue(tenant).waiting.push_back(waiter);
        self.grant();
        let share = granted.await;
        drop(waiting);
        // The queue never drops a waiter whose caller still waits. If it did, the amount would
        // merely not be counted.
        share.unwrap_or_else(|_| self.share(tenant, 0))
    }

    /// Takes an amount if it can be granted now, before all other callers.
    pub fn try_take(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Option<Share> {
        self.take(tenant, amount).now_or_never()
    }

    /// Returns the sum of all shares.
    pub fn taken(&self) -> usize {
        self.state.lock().taken
    }

    /// Returns the most that a tenant may take if no other tenant holds a share.
    fn most(&self) -> usize {
        (self.total / 2).max(1)
    }

    fn share(self: &Arc<Self>, tenant: &TenantId, amount: usize) -> Share {
        Share {
            pool: Arc::clone(self),
            tenant: tenant.clone(),
            amount,
        }
    }

    /// Grants waiting requests, as long as one can be granted.
    fn grant(self: &Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            let Some((tenant, waiter)) = state.next(self.total) else {
                return;
            };
            drop(state);
            // If the caller is gone, the share is dropped here, and its `drop` locks the state.
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
    /// Removes the next waiter from its queue and counts its amount as taken. If the first waiter
    /// does not fit, other large requests wait behind it. Small ones overtake it, but only up to a
    /// bound, so that it does not wait for ever.
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

    /// Returns the queue of a tenant. A new tenant goes after the tenants with an earlier turn.
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
    /// Returns the tenant that holds the share.
    pub fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    /// Returns the amount of the share.
    pub fn amount(&self) -> usize {
        self.amount
    }

    /// Changes the amount of the share without waiting. The sum of all shares may then exceed the
    /// total, and other callers wait until it no longer does.
    pub fn set(&mut self, amount: usize) {
        let before = std::mem::replace(&mut self.amount, amount);
        {
            let mut state = self.pool.state.lock();
            state.taken = state.taken + amount - before;
            let queue = state.queue(&self.tenant);
            queue.taken = queue.taken + amount - before;
        }
        self.pool.grant();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.give_back(&self.tenant, self.amount);
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        if let Some(queue) = state.tenants.get_mut(self.tenant) {
            queue.waiting.retain(|waiter| !waiter.grant.is_closed());
        }
        state.forget_idle(self.tenant);
        drop(state);
        // The callers behind this one may fit.
        self.pool.grant();
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
        // Of the four left, tenant b takes two. Of the two left, c takes one. Then d takes the last
        // one.
        for tenant in [&b, &tenant("c")] {
            while let Some(share) = shares.take(tenant, 1).now_or_never() {
                held.push(share);
            }
        }
        assert_eq!((shares.taken(), shares.state.lock().tenants[&b].taken), (7, 2));
        held.push(shares.take(&tenant("d"), 1).now_or_never().unwrap());
        held.clear();
        assert_eq!((shares.taken(), shares.state.lock().tenants.len()), (0, 0));
        // A request that never fits is cut to the most that one tenant may take.
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
        // There is room for 1, which tenant a wants, but tenant c goes next and wants 2.
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
        // This caller is granted its share, but leaves before it receives the share.
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
        // Requests overtake it until their sum is the total. Later requests wait behind it.
        let mut passed = 0;
        while let Some(share) = small(7 + passed) {
            held.push_back(share);
            drop(held.pop_front());
            passed += 1;
            assert!(passed < 100, "the large one waits for ever");
        }
        // A tenant that came in the same turn may go first as well.
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
