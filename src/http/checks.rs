//! Checks values that occur in several bodies. Each error names the field of an invalid value.

use std::collections::BTreeMap;

use super::parameters::{YEAR_RULE, has_plain_year};
use super::problem::Problem;
use agent::definition::AgentDefinition;
use agent::state::ExecutionBudget;
use values::clock::Timestamp;
use values::json::{Object, Value};
use values::message::Section;
use values::session;

const MAX_STEPS: u32 = 1_000_000;
const MAX_TOKENS: u64 = 1_000_000_000_000;
/// The key of a run's metadata that names its task of `/mcp`. Callers can't set it.
pub(super) const TASK_METADATA: &str = "mcp_task";
/// A week.
const MAX_SECONDS: f64 = 604_800.0;

/// Checks the name of an agent.
pub(super) fn check_agent_name(name: &str, pointer: &str) -> Result<(), Problem> {
    check(
        AgentDefinition::is_valid_name(name),
        pointer,
        AgentDefinition::NAME_RULE,
    )
}

/// Checks the name of a section.
pub(super) fn check_section(section: &Section, pointer: &str) -> Result<(), Problem> {
    check(section.is_valid(), pointer, Section::RULE)
}

/// Checks that RFC 3339 can represent an instant.
pub(super) fn check_year(instant: Option<Timestamp>, pointer: &str) -> Result<(), Problem> {
    check(instant.is_none_or(has_plain_year), pointer, YEAR_RULE)
}

/// Checks the size of key-value pairs.
pub(super) fn check_metadata(metadata: &Object, pointer: &str) -> Result<(), Problem> {
    session::check_metadata(metadata).map_err(|words| Problem::invalid_field(pointer, words))
}

/// Checks that the metadata of a run has no key of the service.
pub(super) fn check_reserved(metadata: &Object, pointer: &str) -> Result<(), Problem> {
    let is_free = !metadata.contains_key(TASK_METADATA);
    check(
        is_free,
        &format!("{pointer}/{TASK_METADATA}"),
        "the key belongs to the service",
    )
}

/// Checks the size of variables.
pub(super) fn check_variables(variables: &BTreeMap<String, Value>, pointer: &str) -> Result<(), Problem> {
    session::check_variables(variables).map_err(|words| Problem::invalid_field(pointer, words))
}

/// Checks that each limit is positive and not absurdly large.
pub(super) fn check_budget(budget: &ExecutionBudget, pointer: &str) -> Result<(), Problem> {
    let is_time = |seconds: f64| seconds > 0.0 && seconds <= MAX_SECONDS;
    let (field, rule) = if budget.max_steps.is_some_and(|steps| !(1..=MAX_STEPS).contains(&steps)) {
        ("max_steps", format!("not between 1 and {MAX_STEPS}"))
    } else if budget
        .max_tokens
        .is_some_and(|tokens| !(1..=MAX_TOKENS).contains(&tokens))
    {
        ("max_tokens", format!("not between 1 and {MAX_TOKENS}"))
    } else if budget.max_seconds.is_some_and(|seconds| !is_time(seconds)) {
        ("max_seconds", format!("not above 0 and up to {MAX_SECONDS}"))
    } else if !budget.deadline.is_none_or(has_plain_year) {
        ("deadline", YEAR_RULE.to_owned())
    } else {
        return Ok(());
    };
    Err(Problem::invalid_field(format!("{pointer}/{field}"), rule))
}

fn check(is_valid: bool, pointer: &str, rule: &str) -> Result<(), Problem> {
    if is_valid {
        Ok(())
    } else {
        Err(Problem::invalid_field(pointer, rule))
    }
}
