//! Emits the deltas of a completion: piece by piece, or all at once if hooks must see the whole
//! first.

use std::collections::BTreeMap;

use crate::events::{AgentEvent, EventSink};
use crate::ports::ModelEvent;
use values::message::ContentPart;

/// The level of the emitted deltas; each level includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Emitted {
    /// Nothing.
    Nothing,
    /// The model's reasoning.
    Reasoning,
    /// Also its text and calls.
    Everything,
}

/// Emits the deltas of one completion.
pub(super) struct Deltas<'a> {
    sink: &'a dyn EventSink,
    step_number: usize,
    emitted: Emitted,
    call_ids: BTreeMap<usize, String>,
}

impl<'a> Deltas<'a> {
    /// Makes an emitter that emits deltas of this level to the sink as they arrive.
    pub(super) fn new(sink: &'a dyn EventSink, step_number: usize, emitted: Emitted) -> Self {
        Self {
            sink,
            step_number,
            emitted,
            call_ids: BTreeMap::new(),
        }
    }

    /// Emits a piece; returns whether anything of the completion was emitted.
    pub(super) fn emit(&mut self, event: ModelEvent) -> bool {
        let kind = match &event {
            ModelEvent::ReasoningDelta { .. } => Emitted::Reasoning,
            _ => Emitted::Everything,
        };
        if kind > self.emitted {
            return false;
        }
        let step_number = self.step_number;
        let event = match event {
            ModelEvent::TextDelta { text } => message_delta(step_number, text, false),
            ModelEvent::RefusalDelta { text } => message_delta(step_number, text, true),
            ModelEvent::ReasoningDelta { text } => AgentEvent::ReasoningDelta { step_number, text },
            ModelEvent::ToolCallStarted { index, id, name } => {
                self.call_ids.insert(index, id.clone());
                AgentEvent::ToolCallStarted {
                    step_number,
                    index,
                    call_id: id,
                    name,
                }
            }
            ModelEvent::ToolCallDelta { index, arguments } => {
                let call_id = self.call_ids.get(&index).cloned().unwrap_or_default();
                AgentEvent::ToolCallDelta {
                    step_number,
                    index,
                    call_id,
                    arguments,
                }
            }
            ModelEvent::Usage(_)
            | ModelEvent::AttemptFailed { .. }
            | ModelEvent::AttemptBegun
            | ModelEvent::Completed(_) => return false,
        };
        self.sink.emit(event);
        true
    }

    /// Emits a whole part; `index` is the index of a call in its completion.
    fn emit_part(&mut self, index: usize, part: &ContentPart) {
        let event = match part {
            ContentPart::Text(part) if !part.text.is_empty() => {
                let text = part.text.clone();
                ModelEvent::TextDelta { text }
            }
            ContentPart::Refusal { text } => ModelEvent::RefusalDelta { text: text.clone() },
            ContentPart::Reasoning(part) if !part.text.is_empty() => {
                let text = part.text.clone();
                ModelEvent::ReasoningDelta { text }
            }
            ContentPart::ToolCall(call) => {
                self.emit(ModelEvent::ToolCallStarted {
                    index,
                    id: call.id.clone(),
                    name: call.name.clone(),
                });
                let arguments = call.arguments.clone();
                ModelEvent::ToolCallDelta { index, arguments }
            }
            _ => return,
        };
        self.emit(event);
    }
}

/// Emits the rest of a completion: the deltas of levels up to `emitted` that were not emitted as
/// they arrived.
pub(super) fn emit_rest(
    sink: &dyn EventSink,
    step_number: usize,
    content: &[ContentPart],
    already: Emitted,
    emitted: Emitted,
) {
    let mut deltas = Deltas::new(sink, step_number, emitted);
    let mut index = 0;
    for part in content {
        let level = match part {
            ContentPart::Reasoning(_) => Emitted::Reasoning,
            _ => Emitted::Everything,
        };
        if already < level {
            deltas.emit_part(index, part);
        }
        index += usize::from(matches!(part, ContentPart::ToolCall(_)));
    }
}

fn message_delta(step_number: usize, text: String, refusal: bool) -> AgentEvent {
    AgentEvent::MessageDelta {
        step_number,
        text,
        refusal,
    }
}
