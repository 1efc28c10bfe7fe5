//! `[prices."PROVIDER/MODEL"]`: the prices of tokens.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::ConfigError;
use super::model_names::model_named;
use super::sections::Sections;
use models::{ProviderKind, ProviderSettings};
use values::settings::{dollars, optional_dollars};
use values::usage::{Price, PriceTable};

/// The prices of a model's tokens, in US dollars per million.
#[derive(Deserialize)]
struct PriceConfig {
    #[serde(deserialize_with = "dollars")]
    input: f64,
    #[serde(deserialize_with = "dollars")]
    output: f64,
    #[serde(default, deserialize_with = "optional_dollars")]
    cache_read: Option<f64>,
    #[serde(default, deserialize_with = "optional_dollars")]
    cache_write: Option<f64>,
}

/// Reads the table of prices for runs. Scripted providers are free.
pub(super) fn read(
    sections: &Sections<'_>,
    providers: &BTreeMap<String, ProviderSettings>,
) -> Result<PriceTable, ConfigError> {
    let prices: BTreeMap<String, PriceConfig> = sections.read("prices")?;
    let price = |(name, price): (&String, &PriceConfig)| -> Result<_, ConfigError> {
        let model = model_named(sections, "prices", "a price", name, providers)?;
        let price = Price::per_million(price.input, price.output, price.cache_read, price.cache_write);
        let price = price.ok_or_else(|| sections.invalid(&["prices", name], "a price is too high"))?;
        Ok((model, price))
    };
    let prices: Result<PriceTable, ConfigError> = prices.iter().map(price).collect();
    let scripted = providers
        .values()
        .filter(|provider| provider.kind == ProviderKind::Scripted);
    Ok(scripted.fold(prices?, |table, provider| table.with_free_provider(&provider.name)))
}
