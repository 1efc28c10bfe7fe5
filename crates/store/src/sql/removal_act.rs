//! The act of a removal, which is recorded if it removes rows.

use super::engine_row::Tally;
use crate::audit::Act;

/// An act that removes rows.
#[derive(Debug, Clone)]
pub(crate) struct RemovalAct {
    pub(crate) act: Act,
    /// The index of the statement whose rows it is about.
    pub(crate) statement: usize,
}

impl RemovalAct {
    /// Returns whether the statements have done it.
    pub(crate) fn is_done(&self, tallies: &[Tally]) -> bool {
        tallies.get(self.statement).is_some_and(|tally| tally.count > 0)
    }
}
