//! Routes of runs.

mod create;
mod events;
mod read;
mod request;
mod view;

pub(super) use self::create::{__path_create_run, create_run};
pub(super) use self::read::{__path_get_run, __path_list_runs, __path_list_steps, get_run, list_runs, list_steps};
pub(super) use self::request::{check_budget, check_metadata, check_variables};
