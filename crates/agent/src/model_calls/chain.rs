//! The models that an agent calls, in their order.

use std::sync::Arc;

use super::left_out::LeftOut;
use crate::ports::Model;
use values::model_ref::ModelRef;
use values::usage::Price;

/// A model that the agent may call.
#[derive(Debug, Clone)]
pub struct ModelChoice {
    pub model_ref: ModelRef,
    /// The client of the model.
    pub model: Arc<dyn Model>,
    /// The price of its tokens, if it is known.
    pub price: Option<Price>,
}

/// The models that the agent may call, in order; at least one.
#[derive(Debug, Clone)]
pub struct ModelChain {
    preferred: ModelChoice,
    fallbacks: Arc<[ModelChoice]>,
    /// The parts that later requests leave out.
    pub(crate) left_out: LeftOut,
}

impl ModelChain {
    /// Makes a chain.
    pub fn new(preferred: ModelChoice, fallbacks: impl IntoIterator<Item = ModelChoice>) -> Self {
        Self {
            preferred,
            fallbacks: fallbacks.into_iter().collect(),
            left_out: LeftOut::default(),
        }
    }

    /// Returns the model that is called first.
    pub fn preferred(&self) -> &ModelChoice {
        &self.preferred
    }

    /// Returns the first model whose price is not known.
    pub fn unpriced(&self) -> Option<&ModelRef> {
        let choice = self.iter().find(|choice| choice.price.is_none())?;
        Some(&choice.model_ref)
    }

    /// Iterates over the models in the order in which they are called.
    pub fn iter(&self) -> impl Iterator<Item = &ModelChoice> {
        std::iter::once(&self.preferred).chain(self.fallbacks.iter())
    }
}
