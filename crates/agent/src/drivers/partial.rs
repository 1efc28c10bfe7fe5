//! The part of a completion that has arrived, retained in case the rest never arrives.

use std::collections::BTreeMap;

use crate::events::ModelRetry;
use crate::model_calls::{chars_at_least, estimated_usage, least_tokens};
use crate::ports::{ModelErrorClass, ModelEvent};
use crate::state::{FinishReason, ModelResponse};
use values::clock::Timestamp;
use values::message::{ContentPart, ReasoningPart};
use values::usage::Usage;

/// Collects the deltas of a completion.
///
/// Tool calls are left out: arguments that are cut short must not run, and a call without a result
/// must not be stored.
#[derive(Debug)]
pub(super) struct PartialCompletion {
    /// The size of the request.
    asked: u64,
    /// The words, in the order in which they arrived. Adjacent words of a kind are one part.
    content: Vec<ContentPart>,
    usage: Usage,
    /// The usage of failed attempts before this one.
    failed_usage: Usage,
    /// The failure of the attempt before the next one.
    failure: Option<ModelErrorClass>,
    /// The characters that have arrived.
    chars: u64,
    arrival: Arrival,
    /// The bytes that have arrived since the provider last counted.
    uncounted: u64,
}

/// The attempts of a request, and the time at which its completion began to arrive.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    /// The number of attempts that have begun.
    pub(super) attempts: u32,
    /// The attempts after the first one.
    pub(super) retries: Vec<ModelRetry>,
    /// When the first piece of the completion arrived. A count of tokens is not a piece of it.
    pub(super) first_token_at: Option<Timestamp>,
}

impl Arrival {
    /// The first attempt, of which nothing has arrived.
    pub(super) const NOTHING: Self = Self {
        attempts: 1,
        retries: Vec::new(),
        first_token_at: None,
    };
}

impl PartialCompletion {
    /// Makes an empty completion of a request of `asked` bytes.
    pub(super) fn new(asked: u64) -> Self {
        Self {
            asked,
            content: Vec::new(),
            usage: Usage::default(),
            failed_usage: Usage::default(),
            failure: None,
            chars: 0,
            arrival: Arrival::NOTHING,
            uncounted: 0,
        }
    }

    /// Adds one event, which has just arrived.
    pub(super) fn push(&mut self, event: &ModelEvent, now: impl Fn() -> Timestamp) {
        let delta = match event {
            ModelEvent::TextDelta { text }
            | ModelEvent::ReasoningDelta { text }
            | ModelEvent::RefusalDelta { text } => {
                add_words(&mut self.content, event);
                text.as_str()
            }
            ModelEvent::ToolCallDelta { arguments, .. } => arguments,
            ModelEvent::Usage(usage) => {
                self.usage = *usage;
                self.uncounted = 0;
                ""
            }
            ModelEvent::AttemptFailed { usage, class } => {
                self.failure = Some(*class);
                self.failed_usage = self.failed_usage + *usage;
                self.usage = Usage::default();
                ""
            }
            ModelEvent::AttemptBegun => {
                self.arrival.attempts = self.arrival.attempts.saturating_add(1);
                self.arrival.retries.extend(self.failure.take().map(|class| ModelRetry {
                    reason: class.as_str().to_owned(),
                    began_at: now(),
                }));
                ""
            }
            ModelEvent::ToolCallStarted { .. } | ModelEvent::Completed(_) => "",
        };
        let is_piece = !matches!(
            event,
            ModelEvent::Usage(_) | ModelEvent::AttemptFailed { .. } | ModelEvent::AttemptBegun
        );
        if is_piece {
            self.arrival.first_token_at.get_or_insert_with(now);
        }
        self.chars += chars_at_least(delta);
        self.uncounted += delta.len() as u64;
    }

    /// Returns the fewest tokens that the characters so far can have.
    pub(super) fn least_tokens(&self) -> u64 {
        least_tokens(self.chars)
    }

    /// Returns the attempts so far, and when the completion began to arrive.
    pub(super) fn arrival(&self) -> Arrival {
        self.arrival.clone()
    }

    /// Returns the output tokens that have been counted.
    pub(super) fn output_tokens(&self) -> u64 {
        self.usage.output_tokens
    }

    /// Returns the usage of the request, once the provider has counted it.
    pub(super) fn input_usage(&self) -> Option<Usage> {
        let usage = self.usage;
        (usage.input_tokens > 0).then(|| Usage {
            output_tokens: 0,
            reasoning_tokens: 0,
            total_tokens: usage.total_tokens.saturating_sub(usage.output_tokens),
            ..usage
        })
    }

    /// Returns the usage of failed attempts.
    pub(super) fn failed_usage(&self) -> Usage {
        self.failed_usage
    }

    /// Ends the completion with what has arrived. Estimates usage that was not counted: servers
    /// count the output only at the end, and some also count the request only then.
    pub(super) fn into_response(self) -> ModelResponse {
        let unasked = if self.usage.total_tokens == 0 { self.asked } else { 0 };
        let usage = if self.uncounted > 0 {
            self.usage + estimated_usage(unasked, self.uncounted)
        } else {
            self.usage
        };
        ModelResponse {
            content: self.content,
            provider_fields: None,
            finish_reason: FinishReason::Interrupted,
            usage,
            provider_tool_calls: BTreeMap::new(),
            model: None,
            response_id: None,
        }
    }
}

/// Adds the words of a delta, if it has any.
fn add_words(content: &mut Vec<ContentPart>, delta: &ModelEvent) {
    match (content.last_mut(), delta) {
        (Some(ContentPart::Text(part)), ModelEvent::TextDelta { text }) => part.text.push_str(text),
        (Some(ContentPart::Reasoning(part)), ModelEvent::ReasoningDelta { text }) => part.text.push_str(text),
        (Some(ContentPart::Refusal { text: words }), ModelEvent::RefusalDelta { text }) => words.push_str(text),
        _ => content.extend(part_of(delta)),
    }
}

fn part_of(delta: &ModelEvent) -> Option<ContentPart> {
    match delta {
        ModelEvent::TextDelta { text } if !text.is_empty() => Some(ContentPart::text(text)),
        ModelEvent::RefusalDelta { text } if !text.is_empty() => Some(ContentPart::Refusal { text: text.clone() }),
        ModelEvent::ReasoningDelta { text } if !text.is_empty() => Some(ContentPart::Reasoning(ReasoningPart {
            text: text.clone(),
            ..ReasoningPart::default()
        })),
        _ => None,
    }
}
