//! Finds calls of our tools that arrived as blocks of the provider's own. The provider does not
//! execute them, so they would be lost in silence. Knows the spellings of all protocols.

use super::calls::is_call;
use super::fault::Fault;
use super::fields::Fields;
use super::retry::AttemptError;
use agent::ports::{ModelEvent, ModelRequest};
use agent::state::{FinishReason, ModelResponse};
use values::message::ContentPart;

/// The fields with a block, in protocols that wrap blocks.
const WRAPPERS: [&str; 4] = ["toolUse", "functionCall", "toolResult", "functionResponse"];
/// The fields with the id of a call, in the call and in its result.
const IDS: [&str; 4] = ["call_id", "tool_use_id", "toolUseId", "id"];

/// Removes the completion and fails if it has a call of a tool that neither side executes. In a
/// pause, the provider may still execute it.
pub(super) fn check(events: &mut Vec<ModelEvent>, request: &ModelRequest) -> Result<(), AttemptError> {
    let Some(ModelEvent::Completed(response)) = events.last() else {
        return Ok(());
    };
    if response.finish_reason == FinishReason::PauseTurn {
        return Ok(());
    }
    let Some(block) = stray(response, request).map(str::to_owned) else {
        return Ok(());
    };
    events.pop();
    Err(Fault::Unreadable.error(&block))
}

/// Returns the block of a call of one of the tools that has no result.
fn stray<'a>(response: &'a ModelResponse, request: &ModelRequest) -> Option<&'a str> {
    let blocks = || {
        response.content.iter().filter_map(|part| match part {
            ContentPart::Opaque(part) => Some(part.raw.as_str()),
            _ => None,
        })
    };
    blocks().find(|block| {
        let Some(call) = Call::of(block) else { return false };
        let is_result = |other: &str| other != *block && call.id.is_some() && id_of(other) == call.id;
        request.tools.iter().any(|tool| tool.name == call.name) && !blocks().any(is_result)
    })
}

/// A call in a block of the provider's own.
struct Call {
    name: String,
    id: Option<String>,
}

impl Call {
    /// Reads a call that has no result of its own.
    fn of(block: &str) -> Option<Self> {
        let outer = Fields::parse(block)?;
        let kind = outer.borrowed_text("type").unwrap_or_default();
        let wrapped = outer.object("toolUse").or_else(|| outer.object("functionCall"));
        let is_call = wrapped.is_some() || is_call(&kind) || kind.ends_with("_use") || kind.ends_with("_call");
        let call = wrapped.as_ref().unwrap_or(&outer);
        let has_result = ["output", "result", "results", "error"]
            .into_iter()
            .any(|name| call.has(name));
        if !is_call || has_result {
            return None;
        }
        Some(Self {
            name: call.filled("name")?,
            id: id_in(call),
        })
    }
}

fn id_of(block: &str) -> Option<String> {
    let outer = Fields::parse(block)?;
    let wrapped = WRAPPERS.into_iter().find_map(|name| outer.object(name));
    id_in(wrapped.as_ref().unwrap_or(&outer))
}

fn id_in(fields: &Fields<'_>) -> Option<String> {
    IDS.into_iter().find_map(|name| fields.filled(name))
}
