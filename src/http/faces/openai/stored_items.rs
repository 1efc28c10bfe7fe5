//! Messages that no step of a run has made, as items: the input of a response, and the items that a
//! client adds to a conversation.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::executed_calls::{EXECUTED, McpCallItem};
use super::ids::{ItemId, ItemKind};
use super::parts::{ItemStatus, StoredPart};
use crate::run::read::{AnsweredStep, RunMessages};
use values::ids::RunId;
use values::json::Value;
use values::message::{ContentPart, MediaSource, Message, ReasoningPart, Role, ToolCall, ToolResult, joined_text};

/// An item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum StoredItem {
    Message {
        id: ItemId,
        role: &'static str,
        status: ItemStatus,
        content: Vec<StoredPart>,
    },
    Reasoning {
        id: ItemId,
        summary: Vec<StoredPart>,
    },
    FunctionCall {
        id: ItemId,
        call_id: String,
        name: String,
        arguments: String,
        status: ItemStatus,
    },
    FunctionCallOutput {
        id: ItemId,
        call_id: String,
        output: Output,
        status: ItemStatus,
    },
    McpCall(McpCallItem),
}

/// The output of a call, in the form in which most clients send it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Output {
    /// One text alone.
    Text(String),
    Parts(Vec<StoredPart>),
}

/// Returns the items of the input of a run: results of calls that an earlier run has left open, and
/// the messages of the caller.
pub(in crate::http) fn input_items(messages: &RunMessages) -> Vec<Value> {
    let run_id = messages.record.summary.run_id;
    let mut items = Vec::new();
    if let Some(answered) = &messages.answered {
        let results = answered.step.messages.iter().flat_map(|message| message.tool_results());
        let results = results.filter(|result| is_answer(result, answered));
        items.extend(results.map(|result| {
            let step_id = answered.step.step_id;
            let id = ItemId::of_call(ItemKind::FunctionOutput, run_id, step_id, &result.call_id);
            to_json(&output_of_call(id, result))
        }));
    }
    items.extend(items_of(messages.input.iter().map(AsRef::as_ref), Some(run_id)));
    items
}

/// Returns whether a result of a step that a run has finished is an answer of the caller.
fn is_answer(result: &ToolResult, answered: &AnsweredStep) -> bool {
    answered.open_calls.contains(&result.call_id) && !answered.has_executed(&result.call_id)
}

/// Returns the items of messages. `run_id` is the run that has them as its input.
pub(in crate::http) fn items_of<'m>(
    messages: impl IntoIterator<Item = &'m Message>,
    run_id: Option<RunId>,
) -> Vec<Value> {
    let messages: Vec<&Message> = messages.into_iter().collect();
    let mut items = Vec::new();
    let mut merged: BTreeSet<&str> = BTreeSet::new();
    for (at, message) in messages.iter().copied().enumerate() {
        if message.role != Role::Tool {
            merged.clear();
        }
        let of_calls = message.role == Role::Assistant;
        let following = messages.iter().skip(at + 1);
        let following = following.take_while(|next| of_calls && next.role == Role::Tool);
        let results = following.flat_map(|next| next.tool_results());
        let results: BTreeMap<&str, &ToolResult> = results.map(|result| (result.call_id.as_str(), result)).collect();
        let own = MessageItems { message, run_id };
        items.extend(own.reasoning());
        items.extend(own.words());
        for part in &message.content {
            match part {
                ContentPart::ToolCall(call) if call.id.starts_with(EXECUTED) => {
                    let result = results.get(call.id.as_str()).copied();
                    if let Some(result) = result {
                        merged.insert(&result.call_id);
                    }
                    items.push(own.call(call, result));
                }
                ContentPart::ToolCall(call) => items.push(own.call(call, None)),
                ContentPart::ToolResult(result) if !merged.contains(result.call_id.as_str()) => {
                    let number = ItemId::call_number(&result.call_id);
                    items.push(output_of_call(own.id(ItemKind::FunctionOutput, number), result));
                }
                _ => (),
            }
        }
    }
    items.iter().map(to_json).collect()
}

/// Makes the items of one message: its reasoning, its words, its calls and its results.
struct MessageItems<'m> {
    message: &'m Message,
    run_id: Option<RunId>,
}

impl MessageItems<'_> {
    fn id(&self, kind: ItemKind, number: u32) -> ItemId {
        ItemId::of_message(kind, self.run_id, self.message.id, number)
    }

    fn reasoning(&self) -> impl Iterator<Item = StoredItem> {
        let parts = self.message.content.iter().filter_map(|part| match part {
            ContentPart::Reasoning(reasoning) => Some(reasoning),
            _ => None,
        });
        parts.zip(0..).map(move |(ReasoningPart { text, .. }, number)| {
            let text = Some(text.clone()).filter(|text| !text.is_empty());
            StoredItem::Reasoning {
                id: self.id(ItemKind::Reasoning, number),
                summary: text.map(|text| StoredPart::SummaryText { text }).into_iter().collect(),
            }
        })
    }

    fn words(&self) -> Option<StoredItem> {
        let role = self.message.role;
        let words = self.message.content.iter();
        let content: Vec<StoredPart> = words.filter_map(|part| part_of(part, role)).collect();
        (!content.is_empty()).then(|| StoredItem::Message {
            id: self.id(ItemKind::Message, 0),
            role: role_of(role),
            status: ItemStatus::Completed,
            content,
        })
    }

    /// Makes the item of a call, and of its result if the service has executed the call.
    fn call(&self, call: &ToolCall, result: Option<&ToolResult>) -> StoredItem {
        let number = ItemId::call_number(&call.id);
        let (name, arguments) = (call.name.clone(), call.arguments.clone());
        let Some(result) = result else {
            return StoredItem::FunctionCall {
                id: self.id(ItemKind::FunctionCall, number),
                call_id: call.id.clone(),
                name,
                arguments,
                status: ItemStatus::Completed,
            };
        };
        let (id, text) = (self.id(ItemKind::McpCall, number), joined_text(&result.content));
        StoredItem::McpCall(McpCallItem::ended(id, name, arguments, text, result.is_error))
    }
}

fn output_of_call(id: ItemId, result: &ToolResult) -> StoredItem {
    let content = result.content.iter();
    StoredItem::FunctionCallOutput {
        id,
        call_id: result.call_id.clone(),
        output: match result.content.as_slice() {
            [ContentPart::Text(part)] => Output::Text(part.text.clone()),
            _ => Output::Parts(content.filter_map(|part| part_of(part, Role::User)).collect()),
        },
        status: ItemStatus::Completed,
    }
}

/// Returns an item as JSON.
fn to_json(item: &StoredItem) -> Value {
    // Only maps with other keys than texts can't be written, and an item has none.
    serde_json::to_value(item).unwrap_or_default()
}

fn role_of(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User | Role::Tool => "user",
        Role::Assistant => "assistant",
    }
}

fn part_of(part: &ContentPart, role: Role) -> Option<StoredPart> {
    Some(match part {
        ContentPart::Text(part) if role == Role::Assistant => StoredPart::OutputText {
            text: part.text.clone(),
            annotations: [],
            logprobs: [],
        },
        ContentPart::Text(part) => StoredPart::InputText {
            text: part.text.clone(),
        },
        ContentPart::Refusal { text } => StoredPart::Refusal { refusal: text.clone() },
        ContentPart::Image(part) => {
            let (image_url, data, file_id) = source_of(&part.source);
            StoredPart::InputImage {
                image_url: image_url.or(data),
                file_id,
                detail: part.detail.clone().unwrap_or_else(|| "auto".to_owned()),
            }
        }
        ContentPart::Document(part) => {
            let (file_url, file_data, file_id) = source_of(&part.source);
            StoredPart::InputFile {
                file_url,
                file_data,
                file_id,
                filename: part.name.clone(),
            }
        }
        _ => return None,
    })
}

/// Returns the URL, the `data:` URL or the id of a file.
fn source_of(source: &MediaSource) -> (Option<String>, Option<String>, Option<String>) {
    match source {
        MediaSource::Url { url } => (Some(url.clone()), None, None),
        MediaSource::Base64 { media_type, data } => (None, Some(format!("data:{media_type};base64,{data}")), None),
        MediaSource::ProviderFile { file_id, .. } => (None, None, Some(file_id.clone())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use values::clock::Timestamp;
    use values::ids::MessageId;

    fn message(role: Role, content: Value) -> Message {
        let id = MessageId::from_uuid(uuid::Uuid::from_u128(7));
        Message::new(
            id,
            role,
            serde_json::from_value(content).unwrap(),
            Timestamp::UNIX_EPOCH,
        )
    }

    fn kinds(items: &[Value]) -> Vec<&Value> {
        items.iter().map(|item| &item["type"]).collect()
    }

    fn called(id: &str) -> [Message; 2] {
        let content = json!([
            {"type": "text", "text": "a"}, {"type": "reasoning", "text": "hm"},
            {"type": "tool_call", "id": id, "name": "f", "arguments": "{}"},
        ]);
        let result = json!([{"type": "text", "text": "no"}]);
        let result = json!([{"type": "tool_result", "call_id": id, "name": "f", "content": result, "is_error": true}]);
        [message(Role::Assistant, content), message(Role::Tool, result)]
    }

    #[test]
    fn a_message_becomes_its_reasoning_its_words_and_its_calls() {
        let found = items_of(&called("c"), None);
        assert_eq!(
            kinds(&found),
            ["reasoning", "message", "function_call", "function_call_output"]
        );
        assert_eq!(
            found[1]["content"],
            json!([{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}])
        );
        assert_eq!((&found[2]["call_id"], &found[3]["call_id"]), (&json!("c"), &json!("c")));
    }

    #[test]
    fn an_output_of_one_text_is_this_text() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let part = |text: &str| json!({"type": "input_text", "text": text});
        for (content, expected) in [
            (json!([text("a")]), json!("a")),
            (json!([text("")]), json!("")),
            (json!([text("a"), text("b")]), json!([part("a"), part("b")])),
        ] {
            let result = json!([{"type": "tool_result", "call_id": "c", "name": "f", "content": content}]);
            let found = items_of(&[message(Role::Tool, result)], None);
            assert_eq!(found[0]["output"], expected);
        }
    }

    #[test]
    fn a_call_of_the_service_is_one_item_with_its_result() {
        let found = items_of(&called("mcp_c"), None);
        assert_eq!(kinds(&found), ["reasoning", "message", "mcp_call"]);
        let error = json!({"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": "no"}]});
        assert_eq!(
            (&found[2]["error"], &found[2]["output"], &found[2]["status"]),
            (&error, &Value::Null, &json!("failed"))
        );
    }
}
