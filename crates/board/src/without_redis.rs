//! Stands in for `redis/` in a build without its client.

use std::future::{Ready, ready};
use std::sync::Arc;

use super::error::BoardError;
use super::local::LocalBoard;
use super::settings::RedisSettings;
use super::shared::SharedBoard;
use tasks::supervision::Supervisor;

/// Refuses to open a server.
pub(super) fn open(
    _: &str,
    _: RedisSettings,
    _: &Supervisor,
    _: &Arc<LocalBoard>,
) -> Ready<Result<Box<dyn SharedBoard>, BoardError>> {
    ready(Err(not_built()))
}

/// Refuses to check a server.
pub(super) fn check(_: &str, _: RedisSettings) -> Ready<Result<(), BoardError>> {
    ready(Err(not_built()))
}

fn not_built() -> BoardError {
    BoardError {
        operation: "prepare its connections",
        source: "this build has no client of Redis: build it with `--features redis`".into(),
    }
}
