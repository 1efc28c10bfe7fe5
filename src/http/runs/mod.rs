//! Routes of runs.

mod answer_body;
pub(super) mod answers;
pub(super) mod control;
pub(super) mod create;
mod create_body;
mod event_forms;
pub(super) mod events;
mod preference;
pub(super) mod show;
