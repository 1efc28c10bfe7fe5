//! Routes of runs.

mod control;
mod create;
mod events;
mod frames;
mod open_calls;
mod read;
mod request;

pub(super) use self::request::bad_runs;
