//! Usage: tokens and what they cost. Counts saturate; nothing here can overflow or go below zero.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::Sum;
use std::ops::Add;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::model_ref::ModelRef;

/// Tokens of one or more model calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(default)]
pub struct Usage {
    /// All tokens read by the model, those of its cache included.
    pub input_tokens: u64,
    /// All tokens written by the model, reasoning included where the provider counts it so.
    pub output_tokens: u64,
    /// The part of the input read from the provider's prompt cache.
    pub cache_read_tokens: u64,
    /// The part of the input written to the provider's prompt cache.
    pub cache_write_tokens: u64,
    /// The tokens spent on reasoning.
    pub reasoning_tokens: u64,
    /// The provider's total, or input and output.
    pub total_tokens: u64,
    /// What it costs; `None` while no price is known.
    pub cost: Option<Cost>,
}

impl Usage {
    /// Returns the same usage, priced.
    #[must_use]
    pub fn priced(self, price: Option<&Price>) -> Self {
        Self {
            cost: price.map(|price| price.cost(&self)).or(self.cost),
            ..self
        }
    }

    /// Returns what was used since an earlier count.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_sub(earlier.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_sub(earlier.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_sub(earlier.reasoning_tokens),
            total_tokens: self.total_tokens.saturating_sub(earlier.total_tokens),
            cost: self
                .cost
                .map(|cost| cost.saturating_sub(earlier.cost.unwrap_or_default())),
        }
    }
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_write_tokens: self.cache_write_tokens.saturating_add(other.cache_write_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cost: match (self.cost, other.cost) {
                (None, cost) | (cost, None) => cost,
                (Some(left), Some(right)) => Some(left + right),
            },
        }
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Add::add)
    }
}

/// Picodollars in a dollar.
const PICO: f64 = 1e12;
/// Picodollars per token for each dollar per million tokens.
const PICO_PER_TOKEN: f64 = 1e6;

/// An amount in US dollars, counted in whole picodollars so that sums are exact; JSON shows dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, utoipa::ToSchema)]
#[schema(value_type = f64)]
pub struct Cost(u64);

impl Cost {
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
}

impl Cost {
    /// Returns the difference, or nothing when the other amount is larger.
    #[must_use]
    pub fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
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

/// What a model's tokens cost, in picodollars per token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Price {
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Price {
    /// Makes a price from US dollars per million tokens; `None` when one is negative or absurd.
    ///
    /// Cached input costs as much as other input where no price of its own is given.
    pub fn per_million(input: f64, output: f64, cache_read: Option<f64>, cache_write: Option<f64>) -> Option<Self> {
        Some(Self {
            input: pico_per_token(input)?,
            output: pico_per_token(output)?,
            cache_read: pico_per_token(cache_read.unwrap_or(input))?,
            cache_write: pico_per_token(cache_write.unwrap_or(input))?,
        })
    }

    /// Returns how many tokens of output the amount buys; `None` when output is free.
    pub fn output_tokens_for(&self, amount: Cost) -> Option<u64> {
        amount.0.checked_div(self.output)
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
    /// Returns the table in which the models of a provider that have no price cost nothing.
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
}
