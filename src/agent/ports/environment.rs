//! The port to environments: restored from a bundle before the loop, exported to a bundle after it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::json::Value;
use crate::session::EnvironmentState;

/// An environment that can't be restored or exported.
#[derive(Debug, thiserror::Error)]
#[error("the environment could not be {operation}: {message}")]
pub struct EnvironmentError {
    /// `restored` or `exported`.
    pub operation: &'static str,
    /// What happened.
    pub message: String,
    /// The underlying failure.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// Restores environments.
pub trait EnvironmentRuntime: Send + Sync + fmt::Debug {
    /// Restores an environment from its state. Dropping the environment releases its resources.
    fn restore<'a>(
        &'a self,
        state: &'a EnvironmentState,
    ) -> BoxFuture<'a, Result<Box<dyn Environment>, EnvironmentError>>;
}

/// The environment of a run.
pub trait Environment: Send + Sync + fmt::Debug {
    /// Returns the variables that tools and prompts can read.
    fn variables(&self) -> Arc<BTreeMap<String, Value>>;

    /// Returns the state that restores an equal environment.
    fn export(&self) -> BoxFuture<'_, Result<EnvironmentState, EnvironmentError>>;
}
