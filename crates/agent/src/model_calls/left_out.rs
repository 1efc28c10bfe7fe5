//! The parts of requests that a provider has refused. Later requests of the execution to the same
//! model leave them out, so that one tool or one picture does not end every run.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::ports::{ModelRequest, RefusedPart, StructuredOutput};
use crate::state::Messages;
use values::message::{ContentPart, Message, ToolResult};
use values::model_ref::ModelRef;

/// The most parts that one execution leaves out. Each costs a refused request.
const MAX_PARTS: usize = 8;

/// The refused parts.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftOut(Arc<Mutex<Vec<Entry>>>);

#[derive(Debug, Clone)]
struct Entry {
    /// The model whose provider refused the part.
    model: ModelRef,
    part: RefusedPart,
    /// The number of messages of the refused request. Parts of later messages may be accepted: the
    /// model itself writes some of them.
    message_count: usize,
}

impl LeftOut {
    /// Leaves a part out of later requests. Returns whether that is new, so that a repeated request
    /// differs from the refused one.
    pub(crate) fn add(&self, model: &ModelRef, part: &RefusedPart, message_count: usize) -> bool {
        let mut entries = self.0.lock();
        let is_known = |entry: &Entry| {
            let is_same = entry.model == *model && entry.part == *part;
            is_same && (!part.is_of_messages() || entry.message_count >= message_count)
        };
        let is_new = entries.len() < MAX_PARTS && !entries.iter().any(is_known);
        if is_new {
            entries.push(Entry {
                model: model.clone(),
                part: part.clone(),
                message_count,
            });
        }
        is_new
    }

    /// Returns the request without the refused parts, and how its response format is asked for.
    pub(crate) fn applied(
        &self,
        model: &ModelRef,
        request: ModelRequest,
        by: StructuredOutput,
    ) -> (ModelRequest, StructuredOutput) {
        let entries = self.0.lock().clone();
        let entries = entries.into_iter().filter(|entry| entry.model == *model);
        entries.fold((request, by), |(request, by), entry| match entry.part {
            RefusedPart::ResponseFormat => (request, StructuredOutput::Prompt),
            // The tool whose call is the final completion is not added yet.
            RefusedPart::Tool(name) if !request.tools.iter().any(|tool| tool.name == name) => {
                (request, StructuredOutput::Prompt)
            }
            RefusedPart::Tool(name) => (without_tool(request, &name), by),
            part => (without_content(request, &part, entry.message_count), by),
        })
    }
}

fn without_tool(request: ModelRequest, name: &str) -> ModelRequest {
    let tools = request.tools.iter().filter(|tool| tool.name != name);
    ModelRequest {
        tools: tools.cloned().collect(),
        ..request
    }
}

/// Leaves out parts of the first messages. A message without any other part goes as well.
fn without_content(request: ModelRequest, part: &RefusedPart, count: usize) -> ModelRequest {
    let messages = request.messages.iter().enumerate().filter_map(|(at, message)| {
        if at >= count || !part.is_in(message) {
            return Some(Arc::clone(message));
        }
        let content = message.content.iter();
        let content: Vec<_> = content.filter_map(|content| replaced(content, part)).collect();
        (!content.is_empty()).then(|| {
            Arc::new(Message {
                content,
                ..Message::clone(message)
            })
        })
    });
    let messages: Messages = messages.collect();
    ModelRequest { messages, ..request }
}

fn replaced(content: &ContentPart, part: &RefusedPart) -> Option<ContentPart> {
    match content {
        ContentPart::ToolResult(result) => {
            let content = result.content.iter().filter_map(|content| replaced(content, part));
            Some(ContentPart::ToolResult(ToolResult {
                content: content.collect(),
                ..result.clone()
            }))
        }
        content if part.is_content(content) => part.replacement().map(ContentPart::text),
        content => Some(content.clone()),
    }
}
