//! The figures of removals, made of the tallies of their statements.

use crate::store::retention::RemovalFigures;
use crate::store::sql::Tally;

/// The name of a removal in errors.
pub(super) const OPERATION: &str = "remove sessions";

/// Adds the bytes of a tally; returns its number.
pub(super) fn taken(figures: &mut RemovalFigures, tally: &Tally) -> u64 {
    figures.bytes += u64::try_from(tally.bytes).unwrap_or(0);
    u64::try_from(tally.count).unwrap_or(0)
}
