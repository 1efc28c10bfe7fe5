//! `[limits]`: the limits of tenants.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use chrono_tz::Tz;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use super::error::ConfigError;
use super::sections::Sections;
use values::limits::{Limits, Pattern, RequestRate, RunLimits, SpendLimits, SpendWebhook, TenantLimits};
use values::settings::{optional_cost, optional_integer};
use values::tenant::TenantId;
use values::usage::Cost;

/// The limits of tenants.
#[derive(Deserialize)]
struct LimitsConfig {
    /// The limits of every tenant.
    each_tenant: TenantLimitsConfig,
    /// The limits that tokens name.
    profiles: BTreeMap<String, TenantLimitsConfig>,
    /// The limits of single tenants: each value that is set replaces the value of `each_tenant`.
    tenants: BTreeMap<String, TenantLimitsConfig>,
}

/// The limits of a tenant; an absent value does not bind.
#[derive(Default, Deserialize)]
struct TenantLimitsConfig {
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    max_steps: Option<u32>,
    /// Input and output tokens together.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, { i64::MAX }, _>")]
    max_tokens: Option<u64>,
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 604_800, _>")]
    max_seconds: Option<u32>,
    /// US dollars.
    #[serde(default, deserialize_with = "optional_cost")]
    max_cost: Option<Cost>,
    /// US dollars of all runs together.
    #[serde(default, deserialize_with = "optional_cost")]
    max_cost_per_day: Option<Cost>,
    #[serde(default, deserialize_with = "optional_cost")]
    max_cost_per_month: Option<Cost>,
    /// The same for the runs of single agents.
    #[serde(default)]
    agent_spend: BTreeMap<String, AgentSpendConfig>,
    /// Where days and months begin; UTC by default.
    #[serde(default, deserialize_with = "optional_zone")]
    time_zone: Option<Tz>,
    /// Who is told that 50, 80 and 100 % of a limit of spending are spent.
    #[serde(default)]
    spend_webhook: Option<SpendWebhookConfig>,
    /// Patterns of names; empty allows all.
    #[serde(default)]
    agents: Option<Vec<Pattern>>,
    /// Patterns of `PROVIDER/MODEL`; empty allows all.
    #[serde(default)]
    models: Option<Vec<Pattern>>,
    /// Patterns of names; empty allows all.
    #[serde(default)]
    providers: Option<Vec<Pattern>>,
    /// Light runs in progress in this process.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    light_runs: Option<u32>,
    /// Runs that wait in the queue.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 100_000_000, _>")]
    queued_runs: Option<u32>,
    /// Readers that follow runs or changes, or wait for runs, at once in this process.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    readers: Option<u32>,
    /// Bytes of the files of all sessions together, each content counted once.
    #[serde(default, deserialize_with = "optional_integer::<_, 0, { i64::MAX }, _>")]
    max_stored_file_bytes: Option<u64>,
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 100_000, _>")]
    requests_per_second: Option<u32>,
    /// The most requests at once; by default as many as in a second.
    #[serde(default, deserialize_with = "optional_integer::<_, 1, 1_000_000, _>")]
    request_burst: Option<u32>,
}

/// What the runs of an agent may cost together, in US dollars.
#[derive(Clone, Copy, Deserialize)]
struct AgentSpendConfig {
    #[serde(default, deserialize_with = "optional_cost")]
    max_cost_per_day: Option<Cost>,
    #[serde(default, deserialize_with = "optional_cost")]
    max_cost_per_month: Option<Cost>,
}

/// Receives messages about limits of spending.
#[derive(Clone, Deserialize)]
struct SpendWebhookConfig {
    url: String,
    /// A name in `[webhooks.secrets]`.
    #[serde(default)]
    secret: Option<String>,
}

fn optional_zone<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Tz>, D::Error> {
    let name = String::deserialize(deserializer)?;
    let zone = name.parse();
    zone.map(Some)
        .map_err(|_| D::Error::custom(format!("{name:?} is no time zone, such as \"Europe/Berlin\"")))
}

impl TenantLimitsConfig {
    /// Returns these limits, with the limits of all tenants as defaults.
    fn or(&self, all: &Self) -> TenantLimits {
        let patterns = |own: &Option<Vec<Pattern>>, shared: &Option<Vec<Pattern>>| {
            own.as_ref().or(shared.as_ref()).cloned().unwrap_or_default()
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
                spend: SpendLimits {
                    day: self.max_cost_per_day.or(all.max_cost_per_day),
                    month: self.max_cost_per_month.or(all.max_cost_per_month),
                },
            },
            agent_spend: self.agent_spend(all),
            time_zone: self.time_zone.or(all.time_zone).unwrap_or(Tz::UTC),
            spend_webhook: self
                .spend_webhook
                .as_ref()
                .or(all.spend_webhook.as_ref())
                .map(SpendWebhook::from),
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

impl TenantLimitsConfig {
    /// Returns the limits of agents. Those of an agent replace its limits for all tenants.
    fn agent_spend(&self, all: &Self) -> BTreeMap<String, SpendLimits> {
        let agents = all.agent_spend.iter().chain(&self.agent_spend);
        let limits = |spend: &AgentSpendConfig| SpendLimits {
            day: spend.max_cost_per_day,
            month: spend.max_cost_per_month,
        };
        agents.map(|(name, spend)| (name.clone(), limits(spend))).collect()
    }
}

impl From<&SpendWebhookConfig> for SpendWebhook {
    fn from(webhook: &SpendWebhookConfig) -> Self {
        Self {
            url: webhook.url.clone(),
            secret: webhook.secret.clone(),
        }
    }
}

/// Reads the limits of all tenants.
pub(super) fn read(sections: &Sections<'_>) -> Result<Limits, ConfigError> {
    let limits: LimitsConfig = sections.read("limits")?;
    let all = &limits.each_tenant;
    check(sections, all, all, &["limits", "each_tenant"])?;
    let tenant = |(name, own): (&String, &TenantLimitsConfig)| -> Result<_, ConfigError> {
        let tenant = name.parse::<TenantId>();
        let tenant = tenant.map_err(|error| sections.invalid(&["limits", "tenants", name], error.to_string()))?;
        check(sections, own, all, &["limits", "tenants", name])?;
        Ok((tenant, own.or(all)))
    };
    let tenants: Result<Vec<_>, _> = limits.tenants.iter().map(tenant).collect();
    Ok(Limits::new(all.or(all), tenants?))
}

/// Reads the limits of runs that tokens of identity providers name.
pub(super) fn profiles(sections: &Sections<'_>) -> Result<BTreeMap<String, RunLimits>, ConfigError> {
    let limits: LimitsConfig = sections.read("limits")?;
    let none = TenantLimitsConfig::default();
    let profile = |(name, own): (String, TenantLimitsConfig)| -> Result<_, ConfigError> {
        check(sections, &own, &none, &["limits", "profiles", &name])?;
        let limits = own.or(&none).runs;
        Ok((name, limits))
    };
    limits.profiles.into_iter().map(profile).collect()
}

/// Rejects limits that would have no effect: a pattern that can't match any model, and a burst
/// without a rate.
fn check(
    sections: &Sections<'_>,
    own: &TenantLimitsConfig,
    all: &TenantLimitsConfig,
    table: &[&str],
) -> Result<(), ConfigError> {
    let invalid = |key, problem: &str| sections.invalid(&[table, &[key]].concat(), problem);
    for pattern in own.models.iter().flatten() {
        pattern.check_for_models().map_err(|words| invalid("models", &words))?;
    }
    let rate = own.requests_per_second.or(all.requests_per_second);
    if own.request_burst.is_some() && rate.is_none() {
        return Err(invalid("request_burst", "bounds nothing without `requests_per_second`"));
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
        let (own, all) = (own.or(&all).runs, all.or(&all).runs);
        assert_eq!((own.max_steps, all.max_steps), (Some(50), Some(5)));
        assert_eq!((own.max_tokens, own.agents), (Some(1_000), Vec::new()));
        assert_eq!(own.models, all.models);
    }
}
