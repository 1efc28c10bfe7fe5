//! Routes of runs.

mod answer_body;
mod answers;
mod control;
mod create;
mod event_forms;
mod events;
mod preference;
mod read;
mod request;

pub(super) use self::answers::{__path_answer_run, answer_run};
pub(super) use self::control::{__path_cancel_run, __path_steer_run, __path_stop_run, cancel_run, steer_run, stop_run};
pub(super) use self::create::{__path_create_run, create_run};
pub(super) use self::events::{__path_follow_run, follow_run};
pub(super) use self::read::{__path_get_run, __path_list_runs, __path_list_steps, get_run, list_runs, list_steps};
