//! `check-config`: what is in force, and where from.

use super::output::print_piece;
use crate::config::Loaded;

/// Prints every key with its value and origin.
pub(super) fn explain(loaded: &Loaded) -> anyhow::Result<()> {
    Ok(print_piece(&loaded.explain().to_string())?)
}
