//! The fields that the completions of all protocols have in addition to their content.

use std::collections::BTreeMap;

use super::fields::Fields;
use agent::ports::ModelEvent;
use agent::state::{FinishReason, ModelResponse};
use values::message::{ContentPart, ProviderFields};
use values::usage::Usage;

/// The fields around the content of a completion.
#[derive(Debug)]
pub(super) struct Envelope {
    /// The provider's configured name.
    pub(super) provider: String,
    model: Option<String>,
    response_id: Option<String>,
    usage: Usage,
}

impl Envelope {
    /// Makes an envelope with only the provider's name.
    pub(super) fn new(provider: &str) -> Self {
        Self {
            provider: provider.to_owned(),
            model: None,
            response_id: None,
            usage: Usage::default(),
        }
    }

    /// Reads the model and the id from the fields with these names. The first values count.
    pub(super) fn take(&mut self, fields: &Fields<'_>, model: &str, id: &str) {
        self.model = self.model.take().or_else(|| fields.filled(model));
        self.response_id = self.response_id.take().or_else(|| fields.filled(id));
    }

    /// Sets the usage of the whole completion. Returns the event if the usage has changed.
    pub(super) fn changed_usage(&mut self, usage: Usage) -> Option<ModelEvent> {
        let is_new = usage != self.usage;
        self.usage = usage;
        is_new.then_some(ModelEvent::Usage(usage))
    }

    /// Returns the response with this content.
    pub(super) fn response(self, content: Vec<ContentPart>, finish_reason: FinishReason) -> ModelResponse {
        let is_owned = content.iter().any(ContentPart::is_owned);
        ModelResponse {
            content,
            // Only the name is needed: signatures, encrypted reasoning and citations are in the
            // parts.
            provider_fields: is_owned.then(|| ProviderFields::owner(&self.provider)),
            finish_reason,
            usage: self.usage,
            provider_tool_calls: BTreeMap::new(),
            model: self.model,
            response_id: self.response_id,
        }
    }
}

/// Counts calls by the name of their tool.
pub(super) fn count_calls(names: impl IntoIterator<Item = String>) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
    counts
}
