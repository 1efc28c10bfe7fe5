//! The error of the board: its server can't be reached.

use std::error::Error;

/// A server of a board that can't be reached.
#[derive(Debug, thiserror::Error)]
#[error("the board is unavailable: {operation}")]
pub struct BoardError {
    pub operation: &'static str,
    /// The driver's error.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}
