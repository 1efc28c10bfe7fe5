//! What a run has reserved of the limits of spending that it shares with other runs.
//!
//! Each request claims its worst case before it is sent: its input, and all output that it may
//! have. Requests of subagents in flight at the same time claim from the same reservation, so
//! together they stay within it. What a request has claimed and not spent serves the next one.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::ports::{SpendError, SpendSource};
use values::usage::{Cost, Price, Usage};

/// How many tokens of output a request claims at first that does not limit them. The claim grows
/// with the completion.
const UNLIMITED_OUTPUT: u64 = 8_192;

/// The reservation of a run.
#[derive(Debug)]
pub struct Reservation {
    source: Arc<dyn SpendSource>,
    held: Mutex<Held>,
    /// So that requests at the same time do not each reserve for all of them.
    asking: tokio::sync::Mutex<()>,
}

#[derive(Debug, Clone, Copy)]
struct Held {
    /// What is reserved in total, with what the run has spent.
    total: Cost,
    /// The claims of requests in flight.
    claimed: Cost,
}

/// The part of a reservation that a request may spend. It ends with the request.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    reservation: &'a Reservation,
    price: Price,
    amount: Cost,
    /// Whether the request would have claimed more.
    pub(crate) is_tight: bool,
}

impl Reservation {
    /// Begins with an amount that is reserved already.
    pub fn new(source: Arc<dyn SpendSource>, total: Cost) -> Self {
        let claimed = Cost::ZERO;
        Self {
            source,
            held: Mutex::new(Held { total, claimed }),
            asking: tokio::sync::Mutex::default(),
        }
    }

    /// Claims the worst case of a request, and reserves more if it needs to. `least` is the least
    /// usage of the request, and `spent` reads what the run has spent so far. Returns `None` for a
    /// request that costs nothing.
    pub(crate) async fn claim(
        &self,
        spent: impl Fn() -> Cost,
        price: Price,
        input_tokens: u64,
        least: Usage,
        output_tokens: Option<u64>,
    ) -> Result<Option<Claim<'_>>, SpendError> {
        let wanted = price.cost_of_tokens(input_tokens, output_tokens.unwrap_or(UNLIMITED_OUTPUT));
        if wanted == Cost::ZERO {
            return Ok(None);
        }
        let least = least.known_cost() + price.cost_of_tokens(0, 1);
        let amount = self.take(spent, least, wanted.max(least)).await?;
        Ok(Some(Claim {
            reservation: self,
            price,
            amount,
            is_tight: amount < wanted,
        }))
    }

    /// Takes at least `least` and at most `wanted`.
    async fn take(&self, spent: impl Fn() -> Cost, least: Cost, wanted: Cost) -> Result<Cost, SpendError> {
        let _turn = self.asking.lock().await;
        let mut free = self.free(spent());
        if free < wanted {
            let used = spent() + self.held.lock().claimed;
            let total = self.source.reserve(used + least, used + wanted).await?;
            self.held.lock().total = total;
            free = self.free(spent());
        }
        let amount = free.min(wanted).max(least);
        let mut held = self.held.lock();
        held.claimed = held.claimed + amount;
        Ok(amount)
    }

    fn free(&self, spent: Cost) -> Cost {
        let held = *self.held.lock();
        held.total.saturating_sub(spent + held.claimed)
    }
}

impl Claim<'_> {
    /// Returns how many tokens of output the claim pays for, after the cost of `pending`; `None` if
    /// output is free.
    pub(crate) fn output_tokens(&self, pending: Usage) -> Option<u64> {
        self.price
            .output_tokens_for(self.amount.saturating_sub(pending.known_cost()))
    }

    /// Doubles the claim, for a completion that is longer than expected.
    pub(crate) async fn grow(&mut self, spent: impl Fn() -> Cost) -> Result<(), SpendError> {
        let least = self.price.cost_of_tokens(0, 1);
        let more = self.reservation.take(spent, least, self.amount.max(least)).await?;
        self.amount = self.amount + more;
        Ok(())
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        let mut held = self.reservation.held.lock();
        held.claimed = held.claimed.saturating_sub(self.amount);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use futures_util::future::{BoxFuture, join_all};

    use super::*;
    use crate::state::{StopReason, StopSignal};

    /// A limit, and what its only run holds of it.
    #[derive(Debug)]
    struct Limit {
        most: Cost,
        asked: Mutex<Vec<(Cost, Cost)>>,
    }

    impl SpendSource for Limit {
        fn reserve(&self, least: Cost, wanted: Cost) -> BoxFuture<'_, Result<Cost, SpendError>> {
            self.asked.lock().push((least, wanted));
            let signal = || StopSignal::new(StopReason::SpendLimitReached, "limit", "nothing is left");
            let reserved = if least > self.most {
                Err(SpendError::Stopped(signal()))
            } else {
                Ok(wanted.min(self.most))
            };
            async move {
                tokio::task::yield_now().await;
                reserved
            }
            .boxed()
        }
    }

    fn dollars(dollars: f64) -> Cost {
        Cost::from_dollars(dollars).unwrap()
    }

    /// A dollar for a token of output, and a dime for one of input.
    fn price() -> Price {
        Price::per_million(100_000.0, 1_000_000.0, None, None).unwrap()
    }

    fn reservation(most: f64) -> (Arc<Limit>, Reservation) {
        let limit = Arc::new(Limit {
            most: dollars(most),
            asked: Mutex::default(),
        });
        (Arc::clone(&limit), Reservation::new(limit, Cost::ZERO))
    }

    #[tokio::test]
    async fn requests_at_once_claim_no_more_than_is_reserved() {
        let (limit, reservation) = reservation(10.0);
        let claims = (0..5).map(|_| reservation.claim(|| dollars(1.0), price(), 10, Usage::NOTHING, Some(2)));
        let claims: Vec<_> = join_all(claims).await;
        let amounts: Vec<_> = claims
            .iter()
            .map(|claim| claim.as_ref().ok().map(|claim| claim.as_ref().unwrap().amount))
            .collect();
        // Three dollars each, of nine that are not spent.
        assert_eq!(
            amounts,
            [Some(dollars(3.0)), Some(dollars(3.0)), Some(dollars(3.0)), None, None]
        );
        drop(claims);
        // What they claimed serves the next ones.
        let asked = limit.asked.lock().len();
        let next = reservation
            .claim(|| dollars(1.0), price(), 10, Usage::NOTHING, Some(8))
            .await;
        assert_eq!(next.unwrap().unwrap().amount, dollars(9.0));
        assert_eq!(limit.asked.lock().len(), asked);
    }

    #[tokio::test]
    async fn a_claim_is_tight_if_too_little_is_left_and_grows_if_more_is() {
        let (_limit, reservation) = reservation(10.0);
        let tight = reservation.claim(|| Cost::ZERO, price(), 0, Usage::NOTHING, None).await;
        let mut tight = tight.unwrap().unwrap();
        assert!(tight.is_tight);
        assert_eq!(tight.output_tokens(Usage::NOTHING), Some(10));
        assert!(tight.grow(|| Cost::ZERO).await.is_err());
        drop(tight);
        let brief = reservation
            .claim(|| Cost::ZERO, price(), 0, Usage::NOTHING, Some(3))
            .await;
        let mut brief = brief.unwrap().unwrap();
        assert!(!brief.is_tight);
        brief.grow(|| Cost::ZERO).await.unwrap();
        assert_eq!(brief.amount, dollars(6.0));
        drop(brief);
        assert_eq!(reservation.held.lock().claimed, Cost::ZERO);
    }

    #[tokio::test]
    async fn a_request_that_costs_nothing_claims_nothing() {
        let (limit, reservation) = reservation(0.0);
        let free = reservation
            .claim(|| Cost::ZERO, Price::default(), 10, Usage::NOTHING, None)
            .await;
        assert!(free.unwrap().is_none());
        assert_eq!(*limit.asked.lock(), []);
    }
}
