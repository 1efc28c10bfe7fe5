//! `[prices."PROVIDER/MODEL"]`: the prices of tokens.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::error::Fault;
use super::providers::ProviderConfig;
use super::values::{dollars, optional_dollars};
use models::ProviderKind;
use values::model_ref::ModelRef;
use values::spelling::nearest;
use values::usage::{Price, PriceTable};

/// What a model's tokens cost, in US dollars per million.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriceConfig {
    #[serde(deserialize_with = "dollars")]
    pub input: f64,
    #[serde(deserialize_with = "dollars")]
    pub output: f64,
    /// Tokens read from the provider's cache; `None` costs as much as `input`.
    #[serde(default, deserialize_with = "optional_dollars")]
    pub cache_read: Option<f64>,
    /// Tokens written to the provider's cache; `None` costs as much as `input`.
    #[serde(default, deserialize_with = "optional_dollars")]
    pub cache_write: Option<f64>,
}

/// Builds the table of prices for runs. Checked prices are never dropped. Scripted providers are
/// free.
pub(super) fn table(
    prices: &BTreeMap<String, PriceConfig>,
    providers: &BTreeMap<String, ProviderConfig>,
) -> PriceTable {
    let entry = |(name, price): (&String, &PriceConfig)| {
        let model: ModelRef = name.parse().ok()?;
        let price = Price::per_million(price.input, price.output, price.cache_read, price.cache_write)?;
        Some((model, price))
    };
    let scripted = providers
        .iter()
        .filter(|(_, provider)| provider.kind == ProviderKind::Scripted);
    scripted.fold(
        prices.iter().filter_map(entry).collect(),
        |table: PriceTable, (name, _)| table.with_free_provider(name),
    )
}

pub(super) fn check(
    prices: &BTreeMap<String, PriceConfig>,
    providers: &BTreeMap<String, ProviderConfig>,
) -> Result<(), Fault> {
    prices
        .keys()
        .try_for_each(|name| check_name("prices", "a price", name, providers))
}

/// Checks the name of a model in a table. `what` names the values of the table.
pub(super) fn check_name(
    table: &str,
    what: &str,
    name: &str,
    providers: &BTreeMap<String, ProviderConfig>,
) -> Result<(), Fault> {
    let model: ModelRef = name
        .parse()
        .map_err(|_| Fault::new(&[table, name], format!("{what} is named \"PROVIDER/MODEL\"")))?;
    let provider = model.provider();
    if providers.contains_key(provider) {
        return Ok(());
    }
    let known = providers.keys().map(String::as_str);
    let hint = nearest(provider, known).map_or_else(String::new, |name| format!(", did you mean `{name}`?"));
    let problem = format!("there is no provider `{provider}`{hint}");
    Err(Fault::new(&[table, name], problem))
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::usage::Usage;

    #[test]
    fn the_table_charges_the_configured_price() {
        let price = PriceConfig {
            input: 2.0,
            output: 8.0,
            cache_read: Some(0.5),
            cache_write: None,
        };
        let table = table(
            &BTreeMap::from([("openai/gpt-4.1".to_owned(), price)]),
            &BTreeMap::new(),
        );
        let usage = Usage {
            input_tokens: 1_000_000,
            output_tokens: 500_000,
            cache_read_tokens: 400_000,
            ..Usage::default()
        };
        let cost = table.price(&"openai/gpt-4.1".parse().unwrap()).unwrap().cost(&usage);
        assert!((cost.dollars() - (1.2 + 0.2 + 4.0)).abs() < 1e-9, "{cost:?}");
        assert!(table.price(&"openai/gpt-5".parse().unwrap()).is_none());
    }
}
