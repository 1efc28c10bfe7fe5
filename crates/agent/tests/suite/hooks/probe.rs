//! A hook that does what a test wants at the points that it wants.

use std::fmt;
use std::sync::Arc;

use agent::HookPoint;
use agent::hooks::{Hook, HookContext, HookError};
use futures_util::future::BoxFuture;

type Change = Arc<dyn Fn(HookContext) -> Result<HookContext, HookError> + Send + Sync>;

/// Does one thing to each context.
#[derive(Clone)]
pub(crate) struct Probe {
    name: &'static str,
    points: Vec<HookPoint>,
    change: Change,
    holds_back: bool,
}

impl Probe {
    pub(crate) fn at(
        point: HookPoint,
        change: impl Fn(HookContext) -> Result<HookContext, HookError> + Send + Sync + 'static,
    ) -> Self {
        Self::at_each(&[point], change)
    }

    pub(crate) fn at_each(
        points: &[HookPoint],
        change: impl Fn(HookContext) -> Result<HookContext, HookError> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: "probe",
            points: points.to_vec(),
            change: Arc::new(change),
            holds_back: false,
        }
    }

    /// Changes the context at the point and never fails.
    pub(crate) fn changing(
        point: HookPoint,
        change: impl Fn(HookContext) -> HookContext + Send + Sync + 'static,
    ) -> Self {
        Self::at(point, move |context| Ok(change(context)))
    }

    pub(crate) fn named(self, name: &'static str) -> Self {
        Self { name, ..self }
    }

    pub(crate) fn holding_back(self) -> Self {
        Self {
            holds_back: true,
            ..self
        }
    }
}

impl fmt::Debug for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Hook for Probe {
    fn name(&self) -> &str {
        self.name
    }

    fn points(&self) -> &[HookPoint] {
        &self.points
    }

    fn call(&self, context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        Box::pin(async move { (self.change)(context) })
    }

    fn holds_back_deltas(&self) -> bool {
        self.holds_back
    }
}
