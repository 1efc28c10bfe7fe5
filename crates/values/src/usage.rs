//! Usage: tokens and their cost. Counts saturate, so nothing overflows or becomes negative.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model_ref::ModelRef;

/// Tokens of one or more model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Usage {
    /// All tokens that the models have read, including those from a cache.
    pub input_tokens: u64,
    /// All tokens that the models have written, including reasoning.
    pub output_tokens: u64,
    /// The input tokens that the provider read from its prompt cache.
    pub cache_read_tokens: u64,
    /// The input tokens that the provider wrote to its prompt cache.
    pub cache_write_tokens: u64,
    /// The output tokens that went into reasoning; they are priced as output.
    pub reasoning_tokens: u64,
    /// The provider's total, else input plus output.
    pub total_tokens: u64,
    /// US dollars by the configured prices; null if a part of the usage has no known price.
    pub cost: Option<Cost>,
    /// The cost of the parts with a known price, if `cost` is null.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_known_part: Option<Cost>,
}

impl Usage {
    /// No usage, at no cost.
    pub const NOTHING: Self = Self {
        input_tokens: 0,
        output_tokens: 0,
        cache_read_tokens: 0,
        cache_write_tokens: 0,
        reasoning_tokens: 0,
        total_tokens: 0,
        cost: Some(Cost::ZERO),
        cost_known_part: None,
    };

    /// Returns the same usage with its cost. Without a price, the cost that the provider reports
    /// counts.
    #[must_use]
    pub fn priced(self, price: Option<&Price>) -> Self {
        let cost = price.map(|price| price.cost(&self)).or(self.whole_cost());
        self.costing(cost, self.known_cost())
    }

    /// Returns the same usage with an incomplete cost, since a part of it has an unknown price. No
    /// usage still costs nothing.
    #[must_use]
    pub fn partly_priced(self) -> Self {
        self.costing(None, self.known_cost())
    }

    /// Returns whether nothing was used, whether or not it was priced.
    pub fn is_nothing(&self) -> bool {
        let unpriced = Self {
            cost: None,
            cost_known_part: None,
            ..*self
        };
        unpriced == Self::default() && self.known_cost() == Cost::ZERO
    }

    /// Returns the known part of the cost.
    pub fn known_cost(&self) -> Cost {
        self.cost.or(self.cost_known_part).unwrap_or_default()
    }

    /// Returns the maximum of two counts of the same usage, both of which may be incomplete.
    #[must_use]
    pub fn at_least(self, other: Self) -> Self {
        self.combined(other, u64::max).costing(
            both(self.whole_cost(), other.whole_cost(), Cost::max),
            self.known_cost().max(other.known_cost()),
        )
    }

    /// Returns the usage since an earlier count.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.combined(earlier, u64::saturating_sub).costing(
            both(self.whole_cost(), earlier.whole_cost(), Cost::saturating_sub),
            self.known_cost().saturating_sub(earlier.known_cost()),
        )
    }

    /// Returns the tokens of two usages, combined and without a cost.
    fn combined(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        Self {
            input_tokens: combine(self.input_tokens, other.input_tokens),
            output_tokens: combine(self.output_tokens, other.output_tokens),
            cache_read_tokens: combine(self.cache_read_tokens, other.cache_read_tokens),
            cache_write_tokens: combine(self.cache_write_tokens, other.cache_write_tokens),
            reasoning_tokens: combine(self.reasoning_tokens, other.reasoning_tokens),
            total_tokens: combine(self.total_tokens, other.total_tokens),
            ..Self::default()
        }
    }

    /// Returns the whole cost; `None` if a part of it is unknown. No usage costs nothing, even
    /// before it is priced.
    fn whole_cost(&self) -> Option<Cost> {
        self.cost.or_else(|| self.is_nothing().then_some(Cost::ZERO))
    }

    /// Returns the same tokens with the whole cost or, if that is unknown, with its known part.
    fn costing(self, whole: Option<Cost>, known: Cost) -> Self {
        let unpriced = Self {
            cost: None,
            cost_known_part: Some(known),
            ..self
        };
        match whole.or_else(|| unpriced.whole_cost()) {
            Some(cost) => Self {
                cost: Some(cost),
                cost_known_part: None,
                ..self
            },
            None => unpriced,
        }
    }
}

fn both(left: Option<Cost>, right: Option<Cost>, combine: fn(Cost, Cost) -> Cost) -> Option<Cost> {
    left.zip(right).map(|(left, right)| combine(left, right))
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combined(other, u64::saturating_add).costing(
            both(self.whole_cost(), other.whole_cost(), Cost::add),
            self.known_cost() + other.known_cost(),
        )
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::NOTHING, Add::add)
    }
}

/// Picodollars in a dollar.
const PICO: f64 = 1e12;
/// Picodollars in a microdollar.
const PICO_PER_MICRO: u64 = 1_000_000;
/// Picodollars per token for each dollar per million tokens.
const PICO_PER_TOKEN: f64 = 1e6;

/// An amount in US dollars, counted in whole picodollars so that sums are exact; JSON shows
/// dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, utoipa::ToSchema)]
#[schema(value_type = f64, minimum = 0, exclusive_maximum = 18_000_000)]
pub struct Cost(u64);

impl Cost {
    /// No dollars.
    pub const ZERO: Self = Self(0);
    /// The largest amount.
    pub const MAX: Self = Self(u64::MAX);

    /// Makes an amount from dollars; `None` when negative, not finite or above 18 million.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the range is checked"
    )]
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let pico = (dollars * PICO).round();
        (0.0..18e18).contains(&pico).then_some(Self(pico as u64))
    }

    /// Returns the amount in dollars.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an amount shown to people; 2^53 picodollars are 9007 dollars"
    )]
    pub fn dollars(self) -> f64 {
        self.0 as f64 / PICO
    }

    /// Returns the difference, or zero if the other amount is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// Returns the amount in whole microdollars, rounded up.
    pub fn microdollars(self) -> i64 {
        i64::try_from(self.0.div_ceil(PICO_PER_MICRO)).unwrap_or(i64::MAX)
    }

    /// Makes an amount from microdollars. A negative one is nothing.
    pub fn from_microdollars(micro: i64) -> Self {
        Self(u64::try_from(micro).unwrap_or_default().saturating_mul(PICO_PER_MICRO))
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Serialize for Cost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let dollars = f64::deserialize(deserializer)?;
        Self::from_dollars(dollars)
            .ok_or_else(|| serde::de::Error::custom("an amount in dollars lies between 0 and 18 million"))
    }
}

/// The prices of a model's tokens, in picodollars per token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Price {
    /// Makes a price from US dollars per million tokens; `None` if a value is negative or absurd.
    ///
    /// Without a separate price, cached input costs as much as other input.
    pub fn per_million(input: f64, output: f64, cache_read: Option<f64>, cache_write: Option<f64>) -> Option<Self> {
        Some(Self {
            input: pico_per_token(input)?,
            output: pico_per_token(output)?,
            cache_read: pico_per_token(cache_read.unwrap_or(input))?,
            cache_write: pico_per_token(cache_write.unwrap_or(input))?,
        })
    }

    /// Returns how many output tokens the amount pays for; `None` if output is free.
    pub fn output_tokens_for(&self, amount: Cost) -> Option<u64> {
        amount.0.checked_div(self.output)
    }

    /// Returns what a request costs with so many tokens of input, none of them from a cache, and of
    /// output.
    pub fn cost_of_tokens(&self, input: u64, output: u64) -> Cost {
        let (input, output) = (input.saturating_mul(self.input), output.saturating_mul(self.output));
        Cost(input.saturating_add(output))
    }

    /// Returns the least cost of `tokens` input tokens, since the provider may have all of them in
    /// its cache.
    pub fn least_input_cost(&self, tokens: u64) -> Cost {
        let least = self.input.min(self.cache_read).min(self.cache_write);
        Cost(tokens.saturating_mul(least))
    }

    /// Returns what the usage costs.
    pub fn cost(&self, usage: &Usage) -> Cost {
        let cached = usage.cache_read_tokens.saturating_add(usage.cache_write_tokens);
        let parts = [
            (usage.input_tokens.saturating_sub(cached), self.input),
            (usage.cache_read_tokens, self.cache_read),
            (usage.cache_write_tokens, self.cache_write),
            (usage.output_tokens, self.output),
        ];
        Cost(parts.iter().fold(0, |sum, (tokens, price)| {
            sum.saturating_add(tokens.saturating_mul(*price))
        }))
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked"
)]
fn pico_per_token(dollars_per_million: f64) -> Option<u64> {
    let pico = (dollars_per_million * PICO_PER_TOKEN).round();
    (0.0..1e15).contains(&pico).then_some(pico as u64)
}

/// The prices of the models that have one.
#[derive(Debug, Clone, Default)]
pub struct PriceTable {
    prices: BTreeMap<ModelRef, Price>,
    /// Providers whose models cost nothing unless they have a price.
    free: BTreeSet<String>,
}

impl PriceTable {
    /// Makes the models of a provider free, unless they have a price.
    #[must_use]
    pub fn with_free_provider(mut self, provider: impl Into<String>) -> Self {
        self.free.insert(provider.into());
        self
    }

    /// Returns the price of the model; `None` when it is not known.
    pub fn price(&self, model: &ModelRef) -> Option<Price> {
        let free = || self.free.contains(model.provider()).then(Price::default);
        self.prices.get(model).copied().or_else(free)
    }
}

impl FromIterator<(ModelRef, Price)> for PriceTable {
    fn from_iter<I: IntoIterator<Item = (ModelRef, Price)>>(prices: I) -> Self {
        Self {
            prices: prices.into_iter().collect(),
            free: BTreeSet::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cached_tokens_are_priced_apart() {
        let price = Price::per_million(2.5, 10.0, Some(1.25), None).unwrap();
        let usage = Usage {
            input_tokens: 1000,
            cache_read_tokens: 400,
            output_tokens: 10,
            ..Usage::default()
        };
        // 600 x 2.5 + 400 x 1.25 + 10 x 10 dollars per million tokens
        assert_eq!(price.cost(&usage), Cost::from_dollars(0.0021).unwrap());
        assert_eq!(serde_json::to_string(&price.cost(&usage)).unwrap(), "0.0021");
    }

    #[test]
    fn sums_are_exact_and_saturate() {
        let dime = Usage {
            cost: Cost::from_dollars(0.1),
            input_tokens: u64::MAX,
            ..Usage::default()
        };
        let sum: Usage = [dime, dime, dime, Usage::default()].into_iter().sum();
        assert_eq!(sum.cost, Cost::from_dollars(0.3));
        assert_eq!(sum.input_tokens, u64::MAX);
    }

    /// Checks the displayed cost of a sum and of its second part.
    #[test]
    fn a_part_without_a_price_leaves_the_sum_without_a_cost() {
        let tokens = Usage {
            output_tokens: 1_000_000,
            ..Usage::default()
        };
        let price = Price::per_million(0.0, 0.25, None, None).unwrap();
        let (priced, unpriced) = (tokens.priced(Some(&price)), tokens.priced(None));
        let billed = Usage {
            cost: Cost::from_dollars(0.5),
            ..tokens
        };
        let shown = |usage: Usage| {
            let shown = serde_json::to_value(usage).unwrap();
            [&shown["cost"], &shown["cost_known_part"]].map(serde_json::Value::as_f64)
        };
        let dollars = |all: f64| [Some(all), None];
        let part = |known: f64| [None, Some(known)];
        let (free, both) = (dollars(0.0), billed + tokens);
        for (parts, sum, later) in [
            (vec![], free, None),
            (vec![Usage::default()], free, Some(free)),
            (vec![Usage::default().priced(None)], free, Some(free)),
            (vec![priced, priced], dollars(0.5), Some(dollars(0.25))),
            (vec![unpriced], part(0.0), Some(free)),
            (vec![priced, unpriced], part(0.25), Some(part(0.0))),
            (vec![unpriced, priced, priced], part(0.5), Some(part(0.5))),
            (vec![priced, Usage::default()], dollars(0.25), Some(free)),
            (vec![billed.priced(None), priced], dollars(0.75), Some(dollars(0.25))),
            (vec![both.priced(None)], part(0.5), Some(free)),
            (vec![both.priced(Some(&price))], dollars(0.5), Some(free)),
        ] {
            let whole: Usage = parts.iter().copied().sum();
            assert_eq!(shown(whole), sum, "{parts:?}");
            let after_first = parts.first().map(|first| shown(whole.since(*first)));
            assert_eq!(after_first, later, "{parts:?}");
        }
    }

    #[test]
    fn a_stored_usage_without_a_known_part_means_that_all_or_nothing_is_known() {
        let read = |text: &str| serde_json::from_str::<Usage>(text).unwrap();
        let known = read(r#"{"output_tokens": 2, "total_tokens": 2, "cost": 0.5}"#);
        assert_eq!((known.cost, known.cost_known_part), (Cost::from_dollars(0.5), None));
        let unknown = read(r#"{"output_tokens": 2, "total_tokens": 2, "cost": null}"#);
        assert_eq!((unknown.cost, unknown.known_cost()), (None, Cost::ZERO));
        assert_eq!((known + unknown).cost_known_part, Cost::from_dollars(0.5));
        assert_eq!(read(r#"{"cost": null}"#), Usage::default());
    }
}
