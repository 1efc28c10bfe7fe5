//! The end of a completion: the finish reason that a provider sends, and whether the content
//! agrees.
//!
//! All protocols share this file. An unknown reason is a failure, never a success.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::body::broken_down;
use super::fault::Fault;
use super::fields::{self, Fields};
use super::retry::AttemptError;
use agent::ports::{ModelError, ModelErrorClass, ModelEvent};
use agent::state::{FinishReason, ModelResponse};
use values::message::ContentPart;

/// The reasons by the words of servers. A test reads the table.
static REASONS: LazyLock<HashMap<String, FinishReason>> =
    LazyLock::new(|| toml::from_str(include_str!("finish_reasons.toml")).unwrap_or_default());

/// The types and the fields of blocks with media, in all protocols.
const MEDIA: [&str; 11] = [
    "image",
    "audio",
    "video",
    "document",
    "file",
    "output_image",
    "output_audio",
    "input_audio",
    "image_generation_call",
    "inlineData",
    "fileData",
];

/// The finish reasons of a completion. Choices have one each, and streams may repeat them.
#[derive(Debug, Default)]
pub(super) struct Ending {
    reason: Option<FinishReason>,
    /// The choice with the text.
    speaker: Option<u64>,
}

impl Ending {
    /// Takes a reason. A reason other than success wins, and otherwise the last one.
    pub(super) fn take(&mut self, word: &str) {
        let new = finish_reason(Some(word));
        if self.reason.as_ref().is_none_or(|known| weight(&new) >= weight(known)) {
            self.reason = Some(new);
        }
    }

    /// Returns whether a reason has arrived.
    pub(super) fn is_known(&self) -> bool {
        self.reason.is_some()
    }

    /// Returns the reason. A complete completion without one has ended by itself.
    pub(super) fn reason(self) -> FinishReason {
        self.reason.unwrap_or(FinishReason::Stop)
    }

    /// Checks the events of a choice. Some gateways split a completion into several choices: one
    /// has the text, others the calls. Two choices with text are alternatives, not one completion.
    pub(super) fn check_choice(&mut self, choice: u64, news: &[ModelEvent]) -> Result<(), Fault> {
        let is_text =
            |event: &ModelEvent| matches!(event, ModelEvent::TextDelta { .. } | ModelEvent::RefusalDelta { .. });
        if news.iter().any(is_text) && *self.speaker.get_or_insert(choice) != choice {
            return Err(Fault::Alternatives);
        }
        Ok(())
    }
}

/// Reads a reason, if there is one. A reason that is no text becomes its JSON, so it is unknown.
pub(super) fn reason_of(fields: &Fields<'_>, name: &str) -> Option<String> {
    let is_none = |word: &str| {
        let word = word.trim().to_ascii_lowercase();
        matches!(word.as_str(), "" | "null" | "none") || word.ends_with("_unspecified")
    };
    fields.words(name).filter(|word| !is_none(word))
}

/// Returns the neutral name of a provider's finish reason. A detail may follow a colon, as in
/// `content_filter: SAFETY`.
pub(super) fn finish_reason(word: Option<&str>) -> FinishReason {
    let Some(word) = word else { return FinishReason::Stop };
    let name = word.split(':').next().unwrap_or_default();
    let letters = name.chars().filter(char::is_ascii_alphabetic);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    let letters = letters.strip_prefix("finishreason").unwrap_or(&letters);
    let known = REASONS.get(letters).cloned();
    known.unwrap_or_else(|| FinishReason::Other(word.to_owned()))
}

/// Returns the completion if its reason and its content agree. Otherwise the attempt has failed.
pub(super) fn settled(mut response: ModelResponse) -> Result<ModelResponse, AttemptError> {
    let has_calls = response.content.iter().any(is_call);
    let is_refusal = |part: &ContentPart| matches!(part, ContentPart::Refusal { .. });
    match &response.finish_reason {
        FinishReason::Other(word) => {
            let message = format!("the provider ended its response with {word}");
            Err(AttemptError::judged(ModelError::new(ModelErrorClass::Server, message)))
        }
        FinishReason::ToolCalls if !has_calls => {
            let message = "the response ends for tool calls, and it has none";
            Err(broken_down(message.to_owned()))
        }
        reason @ (FinishReason::Stop | FinishReason::PauseTurn)
            if !response.content.iter().any(|part| is_said(part, reason)) =>
        {
            Err(broken_down("the response has no text and no tool call".to_owned()))
        }
        // Many servers report a completion with calls as complete.
        FinishReason::Stop if has_calls => {
            response.finish_reason = FinishReason::ToolCalls;
            Ok(response)
        }
        // Some protocols end a refusal like any other completion.
        FinishReason::Stop if response.content.iter().any(is_refusal) => {
            response.finish_reason = FinishReason::Refusal;
            Ok(response)
        }
        _ => Ok(response),
    }
}

fn weight(reason: &FinishReason) -> u8 {
    match reason {
        FinishReason::Stop => 0,
        FinishReason::ToolCalls => 1,
        _ => 2,
    }
}

fn is_call(part: &ContentPart) -> bool {
    matches!(part, ContentPart::ToolCall(_))
}

/// Returns whether a caller or a tool gets anything from the part. In a pause, work of the
/// provider's own tools is enough.
fn is_said(part: &ContentPart, reason: &FinishReason) -> bool {
    match part {
        ContentPart::Text(part) => !part.text.trim().is_empty(),
        ContentPart::Reasoning(_) => false,
        ContentPart::Opaque(part) => {
            let block = Fields::parse(part.raw.as_str()).unwrap_or_default();
            // Some protocols have reasoning in the provider's own form, too.
            let is_reasoning = matches!(block.borrowed_text("type").as_deref(), Some("reasoning" | "thinking"));
            is_media(&block) || (*reason == FinishReason::PauseTurn && !is_reasoning)
        }
        _ => true,
    }
}

/// Returns whether a block of the provider's own is a picture, a sound, a film or a file. Some
/// protocols have a message around it.
fn is_media(block: &Fields<'_>) -> bool {
    let is_one = |block: &Fields<'_>| {
        let kind = block.borrowed_text("type").unwrap_or_default();
        MEDIA.iter().any(|name| kind == *name || block.get(name).is_some())
    };
    let parts = || block.list("content").unwrap_or_default();
    is_one(block) || parts().into_iter().filter_map(fields::object).any(|part| is_one(&part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read_and_all_its_reasons_are_known() {
        let reasons: HashMap<String, FinishReason> = toml::from_str(include_str!("finish_reasons.toml")).unwrap();
        assert!(!reasons.is_empty());
        for (word, reason) in reasons {
            assert!(!matches!(reason, FinishReason::Other(_)), "{word}");
        }
    }

    #[test]
    fn reasons_are_known_in_every_spelling_and_others_are_failures() {
        for (words, expected) in [
            (
                &[
                    "stop",
                    "STOP",
                    "end_turn",
                    "endTurn",
                    "eos_token",
                    "FinishReason.STOP",
                    "FINISH_REASON_STOP",
                ][..],
                FinishReason::Stop,
            ),
            (
                &["tool_calls", "TOOL_CALL", "toolUse", "function_call"],
                FinishReason::ToolCalls,
            ),
            (
                &["length", "MAX_TOKENS", "model_length", "max-output-tokens"],
                FinishReason::Length,
            ),
            (
                &["content_filter", "content_filter: SAFETY", "SPII"],
                FinishReason::ContentFilter,
            ),
            (&["refusal"], FinishReason::Refusal),
            (&["pause_turn"], FinishReason::PauseTurn),
        ] {
            for word in words {
                assert_eq!(finish_reason(Some(word)), expected, "{word}");
            }
        }
        for word in [
            "error",
            "insufficient_system_resource",
            "OTHER",
            "cancelled",
            "abort",
            "",
            "stopped: no",
        ] {
            assert_eq!(finish_reason(Some(word)), FinishReason::Other(word.to_owned()));
        }
    }

    #[test]
    fn no_reason_has_several_spellings() {
        for (raw, expected) in [
            ("null", None),
            ("\"\"", None),
            ("\"null\"", None),
            ("\"None\"", None),
            ("\"FINISH_REASON_UNSPECIFIED\"", None),
            ("\"stop\"", Some("stop")),
            ("7", Some("7")),
            ("{\"a\":1}", Some("{\"a\":1}")),
        ] {
            let text = format!("{{\"reason\":{raw}}}");
            let fields = Fields::parse(&text).unwrap();
            assert_eq!(reason_of(&fields, "reason").as_deref(), expected, "{raw}");
        }
        assert_eq!(reason_of(&Fields::default(), "reason"), None);
    }

    #[test]
    fn a_reason_other_than_success_wins() {
        for (words, expected) in [
            (&["tool_calls", "stop"][..], FinishReason::ToolCalls),
            (&["length", "stop"], FinishReason::Length),
            (&["stop", "error"], FinishReason::Other("error".to_owned())),
            (&[], FinishReason::Stop),
        ] {
            let mut ending = Ending::default();
            for word in words {
                ending.take(word);
            }
            assert_eq!(ending.reason(), expected, "{words:?}");
        }
    }
}
