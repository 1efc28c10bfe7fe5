//! Chance that can be repeated: numbers from a seed. Not for secrets.

use std::time::Duration;

/// A sequence of numbers (`SplitMix64`).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// Begins the sequence of a seed and of what it is for, so that no part's numbers depend on how
    /// often another part asks.
    pub(crate) fn new(seed: u64, purpose: u64) -> Self {
        let mut random = Self { state: seed };
        random.state = random.next() ^ purpose.wrapping_mul(0xA24B_AED4_963E_E407);
        random
    }

    /// Returns a number below the bound, which is above 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns whether something happens that does so in so many of a hundred cases.
    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a time from one to before the other, to the millisecond.
    pub(crate) fn between(&mut self, from: Duration, until: Duration) -> Duration {
        let span = until.saturating_sub(from).as_millis().max(1);
        from + Duration::from_millis(self.below(u64::try_from(span).unwrap_or(u64::MAX)))
    }

    /// Returns an index of a list of this length, which is above 0.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}
