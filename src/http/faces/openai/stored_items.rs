//! Stored messages as items: the input of a response, and the items of a conversation.

use serde::Serialize;

use super::ids::{ItemId, ItemKind};
use values::message::{ContentPart, MediaSource, Message, Role};

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::http) enum StoredItem {
    Message {
        id: String,
        role: &'static str,
        status: ItemStatus,
        content: Vec<StoredPart>,
    },
    Reasoning {
        id: String,
        summary: Vec<StoredPart>,
    },
    FunctionCall {
        id: String,
        call_id: String,
        name: String,
        arguments: String,
        status: ItemStatus,
    },
    FunctionCallOutput {
        id: String,
        call_id: String,
        output: Vec<StoredPart>,
        status: ItemStatus,
    },
}

/// The status of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::http) enum ItemStatus {
    Completed,
}

/// A part of an item.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::http) enum StoredPart {
    InputText {
        text: String,
    },
    OutputText {
        text: String,
        annotations: [(); 0],
        logprobs: [(); 0],
    },
    Refusal {
        refusal: String,
    },
    SummaryText {
        text: String,
    },
    InputImage {
        image_url: Option<String>,
        file_id: Option<String>,
        detail: String,
    },
    InputFile {
        file_url: Option<String>,
        file_data: Option<String>,
        file_id: Option<String>,
        filename: Option<String>,
    },
}

impl StoredItem {
    /// Returns the id.
    pub(in crate::http) fn id(&self) -> &str {
        match self {
            Self::Message { id, .. }
            | Self::Reasoning { id, .. }
            | Self::FunctionCall { id, .. }
            | Self::FunctionCallOutput { id, .. } => id,
        }
    }
}

/// Returns the items of a message. `next_id` makes their ids.
pub(in crate::http) fn items_of(message: &Message, mut next_id: impl FnMut(ItemKind) -> ItemId) -> Vec<StoredItem> {
    let mut items = Vec::new();
    let mut words: Vec<StoredPart> = Vec::new();
    let mut others = Vec::new();
    let status = ItemStatus::Completed;
    for part in &message.content {
        match part {
            ContentPart::Reasoning(reasoning) => {
                let text = StoredPart::SummaryText {
                    text: reasoning.text.clone(),
                };
                items.push(StoredItem::Reasoning {
                    id: next_id(ItemKind::Reasoning).to_string(),
                    summary: if reasoning.text.is_empty() {
                        Vec::new()
                    } else {
                        vec![text]
                    },
                });
            }
            ContentPart::ToolCall(call) => others.push(StoredItem::FunctionCall {
                id: next_id(ItemKind::FunctionCall).to_string(),
                call_id: call.id.clone(),
                name: call.name.clone(),
                arguments: call.arguments.clone(),
                status,
            }),
            ContentPart::ToolResult(result) => others.push(StoredItem::FunctionCallOutput {
                id: next_id(ItemKind::FunctionOutput).to_string(),
                call_id: result.call_id.clone(),
                output: result
                    .content
                    .iter()
                    .filter_map(|part| part_of(part, Role::User))
                    .collect(),
                status,
            }),
            part => words.extend(part_of(part, message.role)),
        }
    }
    if !words.is_empty() {
        items.push(StoredItem::Message {
            id: next_id(ItemKind::Message).to_string(),
            role: role_of(message.role),
            status,
            content: words,
        });
    }
    items.append(&mut others);
    items
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

/// A list of objects, in OpenAI's form.
#[derive(Debug, Serialize)]
pub(in crate::http) struct ObjectList<T> {
    object: &'static str,
    data: Vec<T>,
    first_id: Option<String>,
    last_id: Option<String>,
    has_more: bool,
}

/// The rows of a list that a client asks for.
#[derive(Debug)]
pub(in crate::http) struct Window {
    /// The id after which the rows begin.
    pub(in crate::http) after: Option<String>,
    /// The most rows.
    pub(in crate::http) limit: usize,
    /// Whether the oldest row comes first.
    pub(in crate::http) is_ascending: bool,
}

impl Window {
    /// Makes the list of those items that the client asks for. `items` begin with the oldest.
    pub(in crate::http) fn of(&self, mut items: Vec<StoredItem>) -> ObjectList<StoredItem> {
        if !self.is_ascending {
            items.reverse();
        }
        let after = self.after.as_deref();
        let start = after.map_or(0, |after| {
            items
                .iter()
                .position(|item| item.id() == after)
                .map_or(items.len(), |at| at + 1)
        });
        let mut data = items.split_off(start);
        let has_more = data.len() > self.limit;
        data.truncate(self.limit);
        let id = |item: Option<&StoredItem>| item.map(|item| item.id().to_owned());
        ObjectList {
            object: "list",
            first_id: id(data.first()),
            last_id: id(data.last()),
            data,
            has_more,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;
    use values::clock::Timestamp;
    use values::ids::{MessageId, RunId};
    use values::json::Value;

    fn message(role: Role, content: Value) -> Message {
        let id = MessageId::from_uuid(uuid::Uuid::from_u128(7));
        Message::new(
            id,
            role,
            serde_json::from_value(content).unwrap(),
            Timestamp::UNIX_EPOCH,
        )
    }

    fn items(message: &Message) -> Vec<StoredItem> {
        let (run_id, mut index) = (RunId::from_uuid(uuid::Uuid::from_u128(7)), 0);
        items_of(message, |kind| {
            index += 1;
            ItemId { kind, run_id, index }
        })
    }

    #[test]
    fn a_message_becomes_its_reasoning_its_words_and_its_calls() {
        let content = json!([
            {"type": "reasoning", "text": "hm"}, {"type": "text", "text": "a"},
            {"type": "tool_call", "id": "c", "name": "f", "arguments": "{}"},
        ]);
        let found = to_value(items(&message(Role::Assistant, content))).unwrap();
        let kinds: Vec<_> = found
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["type"].clone())
            .collect();
        assert_eq!(kinds, ["reasoning", "message", "function_call"]);
        assert_eq!(
            found[1]["content"],
            json!([{"type": "output_text", "text": "a", "annotations": [], "logprobs": []}])
        );
        assert_eq!(found[2]["call_id"], "c");
    }

    #[test]
    fn a_window_begins_after_an_item() {
        let source = json!({"kind": "base64", "media_type": "image/png", "data": "aGk="});
        let user = message(Role::User, json!([{"type": "image", "source": source}]));
        let all: Vec<_> = (0..3).flat_map(|_| items(&user)).collect();
        assert_eq!(
            to_value(&all[0]).unwrap()["content"][0]["image_url"],
            "data:image/png;base64,aGk="
        );
        let window = Window {
            after: None,
            limit: 2,
            is_ascending: true,
        };
        let list = to_value(window.of(all.clone())).unwrap();
        assert_eq!(
            (list["data"].as_array().unwrap().len(), &list["has_more"]),
            (2, &json!(true))
        );
        let after = Some("nothing".to_owned());
        let list = to_value(
            Window {
                after,
                limit: 2,
                is_ascending: false,
            }
            .of(all),
        )
        .unwrap();
        assert_eq!((&list["data"], &list["first_id"]), (&json!([]), &Value::Null));
    }
}
