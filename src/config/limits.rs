//! `[limits]`: the limits of tenants.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::Deserialize;

use super::error::Fault;
use super::values::{optional_cost, optional_integer};
use values::limits::{Limits, Pattern, RequestRate, RunLimits, TenantLimits};
use values::tenant::TenantId;
use values::usage::Cost;

/// What tenants may do at most.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LimitsConfig {
    /// What every tenant may do.
    pub each_tenant: TenantLimitsConfig,
    /// What single tenants may do: each value that is set replaces that of `each_tenant`.
    pub tenants: BTreeMap<String, TenantLimitsConfig>,
}

/// What a tenant may do at most; an absent value does not bind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TenantLimitsConfig {
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    pub max_steps: Option<u32>,
    /// Input and output tokens together.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, { i64::MAX }, _>")]
    pub max_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 604_800, _>")]
    pub max_seconds: Option<u32>,
    /// US dollars.
    #[serde(default, deserialize_with = "optional_cost")]
    pub max_cost: Option<Cost>,
    /// Patterns of names; empty allows all.
    #[serde(default)]
    pub agents: Option<Vec<Pattern>>,
    /// Patterns of `PROVIDER/MODEL`; empty allows all.
    #[serde(default)]
    pub models: Option<Vec<Pattern>>,
    /// Patterns of names; empty allows all.
    #[serde(default)]
    pub providers: Option<Vec<Pattern>>,
    /// Light runs in progress in this process.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    pub light_runs: Option<u32>,
    /// Runs that wait in the queue.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 100_000_000, _>")]
    pub queued_runs: Option<u32>,
    /// Readers that follow runs or wait for them at once in this process.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    pub readers: Option<u32>,
    /// Bytes of the files of all sessions together, each content counted once.
    #[serde(default, deserialize_with = "optional_integer::<_, 0, { i64::MAX }, _>")]
    pub max_stored_file_bytes: Option<u64>,
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 100_000, _>")]
    pub requests_per_second: Option<u32>,
    /// Requests at once; by default those of a second.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    pub request_burst: Option<u32>,
}

impl TenantLimitsConfig {
    /// Returns these limits, with those of all tenants as defaults.
    fn or(&self, all: &Self) -> TenantLimits {
        let patterns = |own: &Option<Vec<Pattern>>, of_all: &Option<Vec<Pattern>>| {
            own.as_ref().or(of_all.as_ref()).cloned().unwrap_or_default()
        };
        let per_second = self.requests_per_second.or(all.requests_per_second);
        let (per_second, burst) = (
            per_second.and_then(NonZeroU32::new),
            self.request_burst.or(all.request_burst).and_then(NonZeroU32::new),
        );
        TenantLimits {
            runs: RunLimits {
                max_steps: self.max_steps.or(all.max_steps),
                max_tokens: self.max_tokens.or(all.max_tokens),
                max_seconds: self.max_seconds.or(all.max_seconds),
                max_cost: self.max_cost.or(all.max_cost),
                agents: patterns(&self.agents, &all.agents),
                models: patterns(&self.models, &all.models),
                providers: patterns(&self.providers, &all.providers),
            },
            light_runs: self.light_runs.or(all.light_runs),
            queued_runs: self.queued_runs.or(all.queued_runs),
            readers: self.readers.or(all.readers),
            stored_file_bytes: self.max_stored_file_bytes.or(all.max_stored_file_bytes),
            requests: per_second.map(|per_second| RequestRate {
                per_second,
                burst: burst.unwrap_or(per_second),
            }),
        }
    }
}

/// Builds the limits of all tenants. Checked names are never dropped.
pub(super) fn table(limits: &LimitsConfig) -> Limits {
    let all = &limits.each_tenant;
    let tenants = limits.tenants.iter();
    Limits::new(
        all.or(all),
        tenants.filter_map(|(name, own)| Some((name.parse().ok()?, own.or(all)))),
    )
}

pub(super) fn check(limits: &LimitsConfig) -> Result<(), Fault> {
    let all = &limits.each_tenant;
    check_burst(all, all, &["limits", "each_tenant", "request_burst"])?;
    check_models(all, &["limits", "each_tenant", "models"])?;
    limits.tenants.iter().try_for_each(|(name, own)| {
        name.parse::<TenantId>()
            .map_err(|error| Fault::new(&["limits", "tenants", name], error.to_string()))?;
        check_models(own, &["limits", "tenants", name, "models"])?;
        check_burst(own, all, &["limits", "tenants", name, "request_burst"])
    })
}

/// Rejects a pattern that can't match any model.
fn check_models(limits: &TenantLimitsConfig, path: &[&str]) -> Result<(), Fault> {
    let mut patterns = limits.models.iter().flatten();
    patterns.try_for_each(|pattern| pattern.check_for_models().map_err(|words| Fault::new(path, words)))
}

/// Rejects a burst without a rate, which would have no effect.
fn check_burst(own: &TenantLimitsConfig, all: &TenantLimitsConfig, path: &[&str]) -> Result<(), Fault> {
    let rate = own.requests_per_second.or(all.requests_per_second);
    if own.request_burst.is_some() && rate.is_none() {
        return Err(Fault::new(path, "bounds nothing without `requests_per_second`"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tenants_own_values_replace_those_of_all() {
        let all = TenantLimitsConfig {
            max_steps: Some(5),
            max_tokens: Some(1_000),
            models: Some(vec!["openai/*".parse().unwrap()]),
            agents: Some(vec!["demo".parse().unwrap()]),
            ..TenantLimitsConfig::default()
        };
        let own = TenantLimitsConfig {
            max_steps: Some(50),
            agents: Some(Vec::new()),
            ..TenantLimitsConfig::default()
        };
        let limits = table(&LimitsConfig {
            each_tenant: all,
            tenants: BTreeMap::from([("acme".to_owned(), own)]),
        });
        let of = |name: &str| limits.of(&name.parse().unwrap()).runs.clone();
        assert_eq!((of("acme").max_steps, of("other").max_steps), (Some(50), Some(5)));
        assert_eq!((of("acme").max_tokens, of("acme").agents), (Some(1_000), Vec::new()));
        assert_eq!(of("acme").models, of("other").models);
    }
}
