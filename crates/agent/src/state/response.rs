//! The completion of a model, complete or cut.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use values::message::{ContentPart, ProviderFields};
use values::usage::Usage;

/// The reason of the end of a completion. An unknown reason is data, but never a success.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum FinishReason {
    /// The completion is complete.
    Stop,
    /// The limit of tokens cut the completion.
    Length,
    /// The model waits for tools.
    ToolCalls,
    /// The provider withheld content.
    ContentFilter,
    /// The model declined.
    Refusal,
    /// The provider paused a long turn of its own tools. It continues when called again with its
    /// own message.
    PauseTurn,
    /// The service cut the completion: a budget, a deadline or a cancellation.
    Interrupted,
    /// The provider's own word.
    Other(String),
}

impl FinishReason {
    /// Returns whether the model itself ended the completion, with all that it wanted to say. Every
    /// user of a completion asks this: a call is executed, and a text is trusted, only if it is
    /// whole.
    pub fn is_whole(&self) -> bool {
        matches!(self, Self::Stop | Self::ToolCalls | Self::PauseTurn)
    }

    /// Returns the reason why a completion is not whole, in words for the model and the caller.
    pub fn cut(&self) -> Option<String> {
        match self {
            Self::Stop | Self::ToolCalls | Self::PauseTurn => None,
            Self::Length => Some("the limit of output tokens cut it".to_owned()),
            Self::ContentFilter => Some("the provider's filter cut it".to_owned()),
            Self::Refusal => Some("it ended with a refusal".to_owned()),
            Self::Interrupted => Some("it was interrupted".to_owned()),
            Self::Other(word) => Some(format!("it ended with {word:?}")),
        }
    }
}

impl From<String> for FinishReason {
    fn from(text: String) -> Self {
        match text.as_str() {
            "stop" => Self::Stop,
            "length" => Self::Length,
            "tool_calls" => Self::ToolCalls,
            "content_filter" => Self::ContentFilter,
            "refusal" => Self::Refusal,
            "pause_turn" => Self::PauseTurn,
            "interrupted" => Self::Interrupted,
            _ => Self::Other(text),
        }
    }
}

impl From<FinishReason> for String {
    fn from(reason: FinishReason) -> Self {
        match reason {
            FinishReason::Stop => "stop".to_owned(),
            FinishReason::Length => "length".to_owned(),
            FinishReason::ToolCalls => "tool_calls".to_owned(),
            FinishReason::ContentFilter => "content_filter".to_owned(),
            FinishReason::Refusal => "refusal".to_owned(),
            FinishReason::PauseTurn => "pause_turn".to_owned(),
            FinishReason::Interrupted => "interrupted".to_owned(),
            FinishReason::Other(text) => text,
        }
    }
}

/// A completion of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelResponse {
    /// The parts of the completion, in order.
    pub content: Vec<ContentPart>,
    /// Opaque fields that must return to the provider with the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_fields: Option<ProviderFields>,
    /// The reason of the end.
    pub finish_reason: FinishReason,
    #[serde(default)]
    pub usage: Usage,
    /// The number of calls of each tool that the provider executed itself, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provider_tool_calls: BTreeMap<String, u64>,
    /// The model that the provider reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<String>,
}

impl ModelResponse {
    /// Returns whether the model or its provider refused.
    pub fn is_refusal(&self) -> bool {
        let is_refusal = |part: &ContentPart| matches!(part, ContentPart::Refusal { .. });
        self.finish_reason == FinishReason::Refusal || self.content.iter().any(is_refusal)
    }

    /// Names the model that made the completion, if a part of it is for this model alone.
    #[must_use]
    pub fn made_by(mut self, provider: &str, model: &str) -> Self {
        if self.provider_fields.is_some() || self.content.iter().any(ContentPart::is_owned) {
            let owner = || ProviderFields::owner(provider);
            self.provider_fields.get_or_insert_with(owner).model = Some(model.to_owned());
        }
        self
    }

    /// Removes the model's output, since a hook that must check it first was not called.
    pub fn withhold(&mut self) {
        self.content.clear();
        self.provider_fields = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_a_name_of_its_own_and_an_unknown_one_is_stored() {
        for (reason, name) in [
            (FinishReason::Stop, "stop"),
            (FinishReason::Length, "length"),
            (FinishReason::ToolCalls, "tool_calls"),
            (FinishReason::ContentFilter, "content_filter"),
            (FinishReason::Refusal, "refusal"),
            (FinishReason::PauseTurn, "pause_turn"),
            (FinishReason::Interrupted, "interrupted"),
            (FinishReason::Other("tired".to_owned()), "tired"),
        ] {
            assert_eq!(FinishReason::from(name.to_owned()), reason);
            assert_eq!(String::from(reason), name);
        }
    }
}
