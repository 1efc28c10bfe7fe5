//! Turns a request and a script into the pieces of a response: a pure function, except for the ids
//! of calls.

use std::collections::BTreeMap;
use std::time::Duration;

use super::script::{Script, ScriptedCall, ScriptedError, ScriptedUsage, Turn};
use agent::model_calls::{content_bytes, estimated_usage, request_bytes};
use agent::ports::{ModelError, ModelErrorClass, ModelEvent, ModelRequest};
use agent::state::{FinishReason, ModelResponse};
use values::ids::IdSource;
use values::json::Value;
use values::message::{ContentPart, ReasoningPart, Role, ToolCall, joined_text};
use values::usage::Usage;

/// One piece: a delay, and the event after it.
pub(super) type Piece = (Duration, Result<ModelEvent, ModelError>);

/// The pieces of a completion, each made when it is polled, so that a long completion needs little
/// memory.
pub(super) type Pieces = Box<dyn Iterator<Item = Piece> + Send>;

/// Plays the script's turn for the request.
pub(super) fn play(script: &Script, request: &ModelRequest, ids: &dyn IdSource) -> Pieces {
    let scene = Scene::of(request);
    let Some(turn) = script.turn(&scene.input, scene.step) else {
        let words = format!("the script has no turn for step {} of this input", scene.step);
        let error = ModelError::new(ModelErrorClass::Invalid, words);
        return Box::new(std::iter::once((Duration::ZERO, Err(error))));
    };
    let content = content(turn, &scene, ids);
    let size = turn.chunk_chars.unwrap_or(usize::MAX).max(1);
    let mut calls = 0..;
    let pieces = content
        .clone()
        .into_iter()
        .flat_map(move |part| events_of(part, &mut calls, size));
    if let Some(failure) = &turn.failure {
        let pieces = pieces.take(failure.after_chunks).map(Ok);
        return timed(turn, pieces.chain([Err(error(failure))]));
    }
    let usage = turn.usage.map_or_else(|| estimate(request, &content), claimed);
    let response = ModelResponse {
        finish_reason: finish_reason(turn),
        content,
        provider_fields: None,
        usage,
        provider_tool_calls: BTreeMap::new(),
        model: Some(request.model.clone()),
        response_id: None,
    };
    let end = [ModelEvent::Usage(usage), ModelEvent::Completed(Box::new(response))];
    timed(turn, pieces.chain(end).map(Ok))
}

fn content(turn: &Turn, scene: &Scene, ids: &dyn IdSource) -> Vec<ContentPart> {
    let reasoning = turn.reasoning.iter().map(|reasoning| {
        ContentPart::Reasoning(ReasoningPart {
            text: scene.fill(reasoning),
            ..ReasoningPart::default()
        })
    });
    let text = turn.text.iter().map(|text| ContentPart::text(scene.fill(text)));
    let calls = turn.tool_calls.iter();
    let calls = calls.map(|call| ContentPart::ToolCall(tool_call(call, scene, ids)));
    reasoning.chain(text).chain(calls).collect()
}

/// Returns the events of a part; `calls` numbers the calls.
fn events_of(
    part: ContentPart,
    calls: &mut impl Iterator<Item = usize>,
    size: usize,
) -> Box<dyn Iterator<Item = ModelEvent> + Send> {
    match part {
        ContentPart::Reasoning(part) => {
            Box::new(chunks(part.text, size).map(|text| ModelEvent::ReasoningDelta { text }))
        }
        ContentPart::Text(part) => Box::new(chunks(part.text, size).map(|text| ModelEvent::TextDelta { text })),
        ContentPart::ToolCall(call) => {
            let index = calls.next().unwrap_or_default();
            let started = ModelEvent::ToolCallStarted {
                index,
                id: call.id,
                name: call.name,
            };
            let arguments = chunks(call.arguments, size);
            let arguments = arguments.map(move |arguments| ModelEvent::ToolCallDelta { index, arguments });
            Box::new(std::iter::once(started).chain(arguments))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// The values of the placeholders.
#[derive(Debug)]
struct Scene {
    input: String,
    first_input: String,
    tool_result: String,
    user_messages: usize,
    step: usize,
}

impl Scene {
    fn of(request: &ModelRequest) -> Self {
        let users = || request.messages.iter().filter(|message| message.role == Role::User);
        let newest = request.messages.iter().rev();
        let since = newest.take_while(|message| message.role != Role::User);
        let result = request
            .messages
            .iter()
            .rev()
            .find_map(|message| message.tool_results().last());
        Self {
            input: users()
                .next_back()
                .map(|message| message.joined_text())
                .unwrap_or_default(),
            first_input: users().next().map(|message| message.joined_text()).unwrap_or_default(),
            tool_result: result.map(|result| joined_text(&result.content)).unwrap_or_default(),
            user_messages: users().count(),
            step: since.filter(|message| message.role == Role::Assistant).count(),
        }
    }

    /// Fills the placeholders. Inserted text is not scanned again.
    fn fill(&self, template: &str) -> String {
        let mut filled = String::new();
        let mut rest = template;
        while let Some((before, after)) = rest.split_once("{{") {
            filled.push_str(before);
            let known = after
                .split_once("}}")
                .and_then(|(name, after)| Some((self.value(name.trim())?, after)));
            rest = if let Some((value, after)) = known {
                filled.push_str(&value);
                after
            } else {
                filled.push_str("{{");
                after
            };
        }
        filled + rest
    }

    fn value(&self, name: &str) -> Option<String> {
        match name {
            "input" => Some(self.input.clone()),
            "first_input" => Some(self.first_input.clone()),
            "tool_result" => Some(self.tool_result.clone()),
            "user_messages" => Some(self.user_messages.to_string()),
            "expression" => Some(expression(&self.input)),
            _ => None,
        }
    }

    fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill(text)),
            Value::Array(items) => items.iter().map(|item| self.fill_value(item)).collect(),
            Value::Object(fields) => fields
                .iter()
                .map(|(name, value)| (name.clone(), self.fill_value(value)))
                .collect(),
            other => other.clone(),
        }
    }
}

/// Returns the longest arithmetic expression in the text, or a default.
fn expression(text: &str) -> String {
    let arithmetic = |c: char| c.is_ascii_digit() || " +-*/().^%".contains(c);
    let trim = |run: &str| run.trim_matches([' ', '.', '*', '/', '+', '%', '^']).to_owned();
    let whole = |run: &String| {
        let operators = run
            .char_indices()
            .any(|(position, c)| position > 0 && "+-*/^%".contains(c));
        let depth = run.chars().try_fold(0_i32, |depth, c| match c {
            '(' => Some(depth + 1),
            ')' if depth == 0 => None,
            ')' => Some(depth - 1),
            _ => Some(depth),
        });
        operators && run.ends_with(|c: char| c.is_ascii_digit() || c == ')') && depth == Some(0)
    };
    let runs = text.split(|c| !arithmetic(c)).map(trim).filter(whole);
    runs.max_by_key(String::len).unwrap_or_else(|| "6 * 7".to_owned())
}

fn tool_call(call: &ScriptedCall, scene: &Scene, ids: &dyn IdSource) -> ToolCall {
    ToolCall {
        id: format!("call_{}", ids.next_uuid().simple()),
        name: call.name.clone(),
        arguments: match scene.fill_value(&call.arguments) {
            Value::String(text) => text,
            Value::Null => "{}".to_owned(),
            other => other.to_string(),
        },
        signature: None,
    }
}

/// Splits a text into pieces of `size` characters. Each piece owns only its own characters.
fn chunks(text: String, size: usize) -> impl Iterator<Item = String> {
    let mut position = 0;
    std::iter::from_fn(move || {
        let rest = &text[position..];
        let end = rest.char_indices().nth(size).map_or(rest.len(), |(end, _)| end);
        position += end;
        (end > 0).then(|| rest[..end].to_owned())
    })
}

fn timed(turn: &Turn, events: impl Iterator<Item = Result<ModelEvent, ModelError>> + Send + 'static) -> Pieces {
    let first = Duration::from_millis(turn.delay_ms);
    let further = Duration::from_millis(turn.chunk_delay_ms);
    let delay = move |position: usize, event: &Result<ModelEvent, ModelError>| match (position, event) {
        (0, _) => first,
        (_, Ok(ModelEvent::Usage(_) | ModelEvent::Completed(_))) => Duration::ZERO,
        _ => further,
    };
    Box::new(
        events
            .enumerate()
            .map(move |(position, event)| (delay(position, &event), event)),
    )
}

fn finish_reason(turn: &Turn) -> FinishReason {
    match &turn.finish_reason {
        Some(reason) => FinishReason::from(reason.clone()),
        None if turn.tool_calls.is_empty() => FinishReason::Stop,
        None => FinishReason::ToolCalls,
    }
}

fn error(failure: &ScriptedError) -> ModelError {
    ModelError {
        status: failure.status,
        retry_after: failure.retry_after_ms.map(Duration::from_millis),
        ..ModelError::new(failure.class.into(), failure.message.clone())
    }
}

fn claimed(usage: ScriptedUsage) -> Usage {
    Usage {
        input_tokens: usage.input,
        output_tokens: usage.output,
        cache_read_tokens: usage.cache_read,
        reasoning_tokens: usage.reasoning,
        total_tokens: usage.input.saturating_add(usage.output),
        ..Usage::default()
    }
}

fn estimate(request: &ModelRequest, completion: &[ContentPart]) -> Usage {
    estimated_usage(request_bytes(request), content_bytes(completion))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_arithmetic_of_the_input_is_found() {
        for (text, expected) in [
            ("What is 12 * (3 + 4)?", "12 * (3 + 4)"),
            ("Compute 2+2.", "2+2"),
            ("On 2026-01-02 I paid 10.5*3 euros", "2026-01-02"),
            ("1 + and 2*3", "2*3"),
            ("hello", "6 * 7"),
            ("I have 5 apples", "6 * 7"),
            ("(1 + 2", "6 * 7"),
            ("-4 - 5", "-4 - 5"),
        ] {
            assert_eq!(expression(text), expected, "{text}");
        }
    }

    #[test]
    fn placeholders_are_filled_once() {
        let scene = Scene {
            input: "{{tool_result}}".to_owned(),
            first_input: String::new(),
            tool_result: "r".to_owned(),
            user_messages: 2,
            step: 0,
        };
        let filled = scene.fill("{{input}} {{ tool_result }} {{other}} {{user_messages}} {{");
        assert_eq!(filled, "{{tool_result}} r {{other}} 2 {{");
    }

    #[test]
    fn the_pieces_of_a_long_text_own_no_more_than_the_text() {
        let text = "añb ".repeat(1 << 18);
        for size in [1, 12, usize::MAX] {
            let pieces = || chunks(text.clone(), size);
            assert_eq!(
                pieces().map(|piece| piece.capacity()).sum::<usize>(),
                text.len(),
                "{size}"
            );
            assert!(pieces().eq(chars_of(&text, size)), "{size}");
        }
        assert_eq!(chunks(String::new(), 3).count(), 0);
    }

    fn chars_of(text: &str, size: usize) -> impl Iterator<Item = String> {
        let mut chars = text.chars().peekable();
        std::iter::from_fn(move || chars.peek().is_some().then(|| chars.by_ref().take(size).collect()))
    }
}
