//! Computes when an undelivered message is sent again, as a pure function.

use std::time::Duration;

use values::ids::DeliveryId;

/// The delays of failed messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Backoff {
    /// The longest delay after the first failure. Doubles after each further failure.
    pub(super) base: Duration,
    /// The longest delay after any failure.
    pub(super) max: Duration,
}

impl Backoff {
    /// Returns the delay of a message after the attempt with this number, counted from 1.
    ///
    /// The base delay doubles with each attempt, up to the longest delay. A message waits for at
    /// least half of the result. The other half varies from message to message, so that messages
    /// that failed together are not sent again at the same time. If the receiver requests a longer
    /// delay, that delay applies, up to the longest one.
    pub(super) fn delay(&self, delivery_id: DeliveryId, attempts: u32, asked: Option<Duration>) -> Duration {
        let doublings = attempts.saturating_sub(1).min(31);
        let whole = self.base.saturating_mul(1 << doublings).min(self.max);
        let own = whole / 2 + (whole / 2).mul_f64(share(delivery_id, attempts));
        own.max(asked.unwrap_or_default().min(self.max))
    }
}

/// Returns a number from 0 to 1 that is always the same for an attempt.
fn share(delivery_id: DeliveryId, attempts: u32) -> f64 {
    let mut hasher = blake3::Hasher::new();
    hasher
        .update(delivery_id.as_uuid().as_bytes())
        .update(&attempts.to_be_bytes());
    let mut bytes = [0; 4];
    hasher.finalize_xof().fill(&mut bytes);
    f64::from(u32::from_be_bytes(bytes)) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use uuid::Uuid;

    use super::*;

    const BACKOFF: Backoff = Backoff {
        base: Duration::from_secs(5),
        max: Duration::from_mins(1),
    };

    #[test]
    fn delays_double_up_to_the_longest() {
        let id = DeliveryId::from_uuid(Uuid::from_u128(7));
        for (attempts, whole) in [(1, 5), (2, 10), (3, 20), (4, 40), (5, 60), (6, 60), (u32::MAX, 60)] {
            let delay = BACKOFF.delay(id, attempts, None);
            let whole = Duration::from_secs(whole);
            assert!((whole / 2..=whole).contains(&delay), "{attempts}: {delay:?}");
            assert_eq!(delay, BACKOFF.delay(id, attempts, None), "the same each time");
        }
    }

    #[test]
    fn messages_that_failed_together_are_sent_again_apart() {
        let delays = (0..100).map(|n| BACKOFF.delay(DeliveryId::from_uuid(Uuid::from_u128(n)), 1, None));
        let distinct: BTreeSet<_> = delays.map(|delay| delay.as_millis() / 250).collect();
        assert_eq!(distinct.len(), 10, "every quarter of a second from 2.5 s to 5 s");
    }

    #[test]
    fn a_receiver_may_ask_for_more_but_not_for_less() {
        let id = DeliveryId::from_uuid(Uuid::from_u128(7));
        let own = BACKOFF.delay(id, 2, None);
        for (asked, expected) in [(0, own), (4, own), (30, Duration::from_secs(30)), (3_600, BACKOFF.max)] {
            assert_eq!(
                BACKOFF.delay(id, 2, Some(Duration::from_secs(asked))),
                expected,
                "{asked}"
            );
        }
    }

    #[test]
    fn extreme_settings_do_no_harm() {
        let id = DeliveryId::from_uuid(Uuid::nil());
        let backoff = Backoff {
            base: Duration::MAX,
            max: Duration::from_hours(1),
        };
        assert!(backoff.delay(id, u32::MAX, Some(Duration::MAX)) <= backoff.max);
        assert!(BACKOFF.delay(id, 0, None) <= BACKOFF.base);
    }
}
