//! The ids of background jobs: numbers that a session gives once.

use serde_json::json;

use values::json::Value;
use workspace::environment::{Environment, EnvironmentError};

/// The resource with the number of jobs that a session has had.
const JOBS: &str = "shell_jobs";
/// The part of the id of a job before its number.
const ID: &str = "job-";

/// Returns the number of the next job.
pub(super) fn next_number(environment: &Environment) -> u64 {
    jobs_so_far(environment).saturating_add(1)
}

/// Returns the id of a job.
pub(super) fn id_of(number: u64) -> String {
    format!("{ID}{number}")
}

/// Stores that a number is given.
pub(super) fn store_number(environment: &Environment, number: u64) -> Result<(), EnvironmentError> {
    environment.change_resource(JOBS, |_| json!({"started": number}))
}

/// Returns whether the session has had a job with the id.
pub(super) fn was_job(environment: &Environment, id: &str) -> bool {
    let number = id.strip_prefix(ID).and_then(|number| number.parse::<u64>().ok());
    number.is_some_and(|number| (1..=jobs_so_far(environment)).contains(&number))
}

/// Returns how many jobs the session has had. A caller may have stored anything there.
fn jobs_so_far(environment: &Environment) -> u64 {
    let resources = environment.values().resources;
    let started = resources.get(JOBS).and_then(|jobs| jobs.get("started"));
    started.and_then(Value::as_u64).unwrap_or_default()
}
