//! Emits the deltas of a completion: piece by piece, or all at once if hooks must see the whole
//! first.

use std::collections::BTreeMap;

use crate::agent::events::{AgentEvent, EventSink};
use crate::agent::ports::ModelEvent;
use crate::message::ContentPart;

/// What of an answer is told; each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    /// Nothing.
    Nothing,
    /// The model's reasoning.
    Reasoning,
    /// Its words and calls as well.
    Everything,
}

/// Passes on the pieces of one answer.
pub(super) struct Deltas<'a> {
    sink: &'a dyn EventSink,
    step_number: usize,
    told: Told,
    call_ids: BTreeMap<usize, String>,
}

impl<'a> Deltas<'a> {
    /// Tells the sink what is to be told as it comes.
    pub(super) fn new(sink: &'a dyn EventSink, step_number: usize, told: Told) -> Self {
        Self {
            sink,
            step_number,
            told,
            call_ids: BTreeMap::new(),
        }
    }

    /// Tells of a piece; returns whether anybody heard something of the answer.
    pub(super) fn tell(&mut self, event: ModelEvent) -> bool {
        let kind = match &event {
            ModelEvent::ReasoningDelta { .. } => Told::Reasoning,
            _ => Told::Everything,
        };
        if kind > self.told {
            return false;
        }
        let step_number = self.step_number;
        let event = match event {
            ModelEvent::TextDelta { text } => said(step_number, text, false),
            ModelEvent::RefusalDelta { text } => said(step_number, text, true),
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
            ModelEvent::Usage(_) | ModelEvent::AttemptFailed { .. } | ModelEvent::Completed(_) => return false,
        };
        self.sink.emit(event);
        true
    }
}

/// Tells of an answer as its pieces would have: of what was not told as it came, as much as is to be told.
pub(super) fn tell_rest(sink: &dyn EventSink, step_number: usize, content: &[ContentPart], already: Told, told: Told) {
    let mut index = 0;
    for part in content {
        let kind = match part {
            ContentPart::Reasoning(_) => Told::Reasoning,
            _ => Told::Everything,
        };
        if already < kind && kind <= told {
            tell_part(sink, step_number, index, part);
        }
        index += usize::from(matches!(part, ContentPart::ToolCall(_)));
    }
}

/// Tells of a part; the index is that of a call among those of its answer.
fn tell_part(sink: &dyn EventSink, step_number: usize, index: usize, part: &ContentPart) {
    match part {
        ContentPart::Text(part) if !part.text.is_empty() => sink.emit(said(step_number, part.text.clone(), false)),
        ContentPart::Refusal { text } => sink.emit(said(step_number, text.clone(), true)),
        ContentPart::Reasoning(part) if !part.text.is_empty() => {
            let text = part.text.clone();
            sink.emit(AgentEvent::ReasoningDelta { step_number, text });
        }
        ContentPart::ToolCall(call) => {
            sink.emit(AgentEvent::ToolCallStarted {
                step_number,
                index,
                call_id: call.id.clone(),
                name: call.name.clone(),
            });
            sink.emit(AgentEvent::ToolCallDelta {
                step_number,
                index,
                call_id: call.id.clone(),
                arguments: call.arguments.clone(),
            });
        }
        _ => (),
    }
}

fn said(step_number: usize, text: String, refusal: bool) -> AgentEvent {
    AgentEvent::MessageDelta {
        step_number,
        text,
        refusal,
    }
}
