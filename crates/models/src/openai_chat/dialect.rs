//! The differences between servers of this protocol.

use crate::capabilities::ProviderCapabilities;
use crate::names::IdRule;
use crate::settings::MaxTokensField;

/// The differences between servers of this protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialect {
    /// The provider's configured name: what it gave goes back to it alone.
    pub provider: String,
    /// The field that limits the output tokens.
    pub max_tokens_field: MaxTokensField,
    /// The most output tokens that the server accepts in a request, if known.
    pub max_output_tokens: Option<u64>,
    /// Whether a request must ask for usage in a stream.
    pub stream_options: bool,
    /// Whether a refusal has a separate field. Otherwise it is sent back as text.
    pub refusal_field: bool,
    /// The ids of calls that the server accepts.
    pub call_ids: IdRule,
    /// What its models can take.
    pub capabilities: ProviderCapabilities,
    /// Whether its models write their reasoning into the text, between `<think>` and `</think>`.
    pub think_tags: bool,
}
