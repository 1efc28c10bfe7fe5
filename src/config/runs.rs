//! `[runs]`: its section `[runs.budget]` has narrower bounds than the budget of a request.

use serde::Deserialize;

use super::error::ConfigError;
use super::sections::Sections;
use crate::run::settings::RunSettings;
use agent::state::ExecutionBudget;
use values::settings::{integer, optional_cost, optional_integer};
use values::usage::Cost;

/// The limits of a run where neither it nor its agent names one.
#[derive(Deserialize)]
#[expect(clippy::struct_field_names, reason = "the names are the keys of the configuration")]
struct Budget {
    #[serde(deserialize_with = "integer::<_, 1, 1_000_000, _>")]
    max_steps: u32,
    #[serde(default, deserialize_with = "optional_integer::<_, 1, { i64::MAX }, _>")]
    max_tokens: Option<u64>,
    #[serde(deserialize_with = "integer::<_, 1, 604_800, _>")]
    max_seconds: u32,
    #[serde(default, deserialize_with = "optional_cost")]
    max_cost: Option<Cost>,
}

pub(super) fn read(sections: &Sections<'_>) -> Result<RunSettings, ConfigError> {
    let budget: Budget = sections.read("runs.budget")?;
    Ok(RunSettings {
        budget: ExecutionBudget {
            max_steps: Some(budget.max_steps),
            max_tokens: budget.max_tokens,
            max_seconds: Some(budget.max_seconds.into()),
            max_cost: budget.max_cost,
            deadline: None,
        },
        ..sections.read("runs")?
    })
}
