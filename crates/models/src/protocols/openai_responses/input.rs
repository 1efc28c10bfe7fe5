//! Turns messages into the items of a request.
//!
//! The provider stores no items, so messages and calls are sent without ids that it would look up.
//! Reasoning retains its id. It is sent only in its encrypted form and only before an item that
//! followed it. The provider rejects it elsewhere.

use std::collections::HashSet;
use std::mem;

use serde_json::json;

use crate::encode::{Items, Part, lines, marked, object, raw, verbatim};
use crate::fields::Fields;
use crate::files::{Attachment, data_url};
use crate::names::{IdRule, WireIds, tool_name};
use crate::target::Target;
use values::json::{RawJson, Value};
use values::message::{ContentPart, DocumentPart, ImagePart, MediaSource, Message, Role, ToolCall, ToolResult};
use values::session::Fold;

/// The ids of calls that the protocol accepts.
const CALL_IDS: IdRule = IdRule::UpTo(64);

/// Items that request an action from the caller. Only a `function_call` is supported here, so these
/// are dropped unless the provider itself has returned their output.
pub(super) const CALLERS_CALLS: [&str; 5] = [
    "apply_patch_call",
    "computer_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
];

/// The items of a request, encoded message by message for a model.
#[derive(Debug, Clone)]
pub(super) struct Input {
    target: Target,
    seen: usize,
    ids: WireIds,
    items: Items,
}

impl Input {
    /// Makes the input without messages.
    pub(super) fn new(target: Target) -> Self {
        Self {
            target,
            seen: 0,
            ids: WireIds::new(CALL_IDS),
            items: Items::default(),
        }
    }

    /// Returns the items.
    pub(super) fn items(&self) -> &Items {
        &self.items
    }

    fn add(&mut self, message: &Message) {
        let Self {
            target,
            seen,
            ids,
            items,
        } = self;
        for result in message.tool_results() {
            items.push(&output_item(result, &ids.of_result(result), target, seen));
        }
        match message.role {
            Role::System => {
                let text = input_text(&message.joined_text());
                items.extend(raw(&json!({"type": "message", "role": "system", "content": [text]})));
            }
            Role::User | Role::Tool => items.extend(user_message(message, target, seen)),
            Role::Assistant => CompletionItems::new(message, target, items).add_all(message, ids),
        }
    }
}

impl Fold for Input {
    fn is_like(&self, other: &Self) -> bool {
        self.target == other.target
    }

    fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        for message in messages {
            self.add(message);
        }
    }

    fn retained(self) -> Self {
        Self {
            items: self.items.retained(),
            ..self
        }
    }

    fn bytes(&self) -> usize {
        self.items.bytes() + self.ids.bytes()
    }
}

/// Encodes a message of the caller; `None` if nothing is left of it.
fn user_message(message: &Message, target: &Target, seen: &mut usize) -> Option<Part> {
    let mut content = input_parts(&message.content, target, seen);
    if content.is_empty() {
        if message.role == Role::Tool || message.tool_results().next().is_some() {
            return None;
        }
        content.push(input_text(""));
    }
    raw(&json!({"type": "message", "role": "user", "content": content}))
}

/// Turns a completion into items, in its order.
struct CompletionItems<'a> {
    target: &'a Target,
    /// The calls whose results came from the provider.
    calls_with_output: HashSet<String>,
    /// Whether the marks of the message's parts are this model's.
    is_own: bool,
    items: &'a mut Items,
    /// Reasoning that no item follows yet.
    reasoning: Vec<Part>,
    open: Option<Open>,
}

/// A message item under construction.
struct Open {
    mark: Option<String>,
    content: Vec<Value>,
}

impl<'a> CompletionItems<'a> {
    fn new(message: &Message, target: &'a Target, items: &'a mut Items) -> Self {
        Self {
            target,
            calls_with_output: calls_with_output(message, target),
            is_own: target.made(message),
            items,
            reasoning: Vec::new(),
            open: None,
        }
    }

    fn add_all(mut self, message: &Message, ids: &mut WireIds) {
        for part in &message.content {
            match part {
                ContentPart::Text(part) if !part.text.is_empty() => {
                    let mark = part.signature.as_deref().filter(|_| self.is_own);
                    if self.open.as_ref().is_some_and(|open| open.mark.as_deref() != mark) {
                        self.close();
                    }
                    let mark = mark.map(str::to_owned);
                    let text = json!({"type": "output_text", "text": part.text, "annotations": []});
                    self.add_to_message(mark, text);
                }
                ContentPart::Refusal { text } => {
                    self.add_to_message(None, json!({"type": "refusal", "refusal": text}));
                }
                ContentPart::ToolCall(call) => {
                    let item = self.call_item(call, &ids.of_call(message.id, call, self.is_own));
                    self.push(item);
                }
                ContentPart::Opaque(part) if self.target.made_part(message, part) => self.add_opaque(&part.raw),
                // The text of reasoning is only for people. The item itself is an opaque part.
                _ => {}
            }
        }
        // The provider rejects reasoning that no item follows, so the remaining reasoning is
        // dropped.
        self.close();
    }

    /// Adds a part to the open message, or opens one.
    fn add_to_message(&mut self, mark: Option<String>, part: Value) {
        let open = self.open.get_or_insert_with(|| Open {
            mark,
            content: Vec::new(),
        });
        open.content.push(part);
    }

    fn add_opaque(&mut self, item: &RawJson) {
        let Some(fields) = Fields::parse(item.as_str()) else {
            return;
        };
        let kind = fields.text("type").unwrap_or_default();
        let is_answered = || {
            fields
                .filled("call_id")
                .is_some_and(|id| self.calls_with_output.contains(&id))
        };
        if kind == "reasoning" {
            self.close();
            self.reasoning.extend(reasoning_item(&fields));
        } else if CALLERS_CALLS.contains(&kind.as_str()) && !is_answered() {
            // The provider rejects this item without an output, and also the reasoning before it.
            self.close();
            self.reasoning.clear();
        } else {
            self.push(verbatim(item));
        }
    }

    /// Adds an item after the open message and the reasoning before it.
    fn push(&mut self, item: Option<Part>) {
        self.close();
        self.add(item);
    }

    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            let item = open.encode();
            self.add(item);
        }
    }

    fn add(&mut self, item: Option<Part>) {
        if let Some(item) = item {
            self.items.extend(mem::take(&mut self.reasoning));
            self.items.push(&item);
        }
    }

    /// Encodes a call, with its arguments as the model wrote them, and without the id of its mark.
    fn call_item(&self, call: &ToolCall, id: &str) -> Option<Part> {
        let arguments = if call.arguments.is_empty() {
            "{}"
        } else {
            &call.arguments
        };
        let fields = vec![
            ("type", raw("function_call")?),
            ("call_id", raw(id)?),
            ("name", raw(&tool_name(&call.name))?),
            ("arguments", raw(arguments)?),
        ];
        marked(fields, call.signature.as_deref().filter(|_| self.is_own), &["id"])
    }
}

impl Open {
    /// Encodes the message. The id of a mark only distinguishes messages.
    fn encode(self) -> Option<Part> {
        let fields = vec![
            ("type", raw("message")?),
            ("role", raw("assistant")?),
            ("content", raw(&self.content)?),
        ];
        marked(fields, self.mark.as_deref(), &["id"])
    }
}

/// Returns the ids of the calls whose outputs are in the same message.
fn calls_with_output(message: &Message, target: &Target) -> HashSet<String> {
    let outputs = message.content.iter().filter_map(|part| match part {
        ContentPart::Opaque(part) if target.made_part(message, part) => Fields::parse(part.raw.as_str()),
        _ => None,
    });
    let outputs = outputs.filter(|item| item.text("type").is_some_and(|kind| kind.ends_with("_output")));
    outputs.filter_map(|item| item.filled("call_id")).collect()
}

/// Returns the form of reasoning to send back, without fields that are only for reading. Returns
/// `None` if the provider would have to look the reasoning up.
fn reasoning_item(item: &Fields<'_>) -> Option<Part> {
    let has_content = item.list("content").is_some_and(|content| !content.is_empty());
    if item.filled("encrypted_content").is_none() && !has_content {
        return None;
    }
    let goes_back = |name: &str| name != "status" && (name != "content" || has_content);
    let fields = item.iter().filter(|(name, _)| goes_back(name));
    let mut fields: Vec<_> = fields.map(|(name, value)| (name, value.to_owned())).collect();
    if item.get("summary").is_none() {
        fields.push(("summary", raw(&json!([]))?));
    }
    object(&fields)
}

/// Encodes a result as text, or as parts if it has more than text.
fn output_item(result: &ToolResult, id: &str, target: &Target, seen: &mut usize) -> Value {
    let is_plain = result.content.iter().all(|part| Attachment::of(part).is_none());
    let output = if is_plain {
        Value::from(lines(&result.content))
    } else {
        input_parts(&result.content, target, seen).into()
    };
    json!({"type": "function_call_output", "call_id": id, "output": output})
}

fn input_parts(content: &[ContentPart], target: &Target, seen: &mut usize) -> Vec<Value> {
    let parts = content.iter().filter_map(|part| match part {
        ContentPart::Text(part) => Some(input_text(&part.text)),
        ContentPart::Refusal { text } => Some(input_text(text)),
        _ => target.attachment(part, seen).map(media),
    });
    parts.collect()
}

fn input_text(text: &str) -> Value {
    json!({"type": "input_text", "text": text})
}

fn media(attachment: Attachment<'_>) -> Value {
    match attachment {
        Attachment::Image(part) => image(part),
        Attachment::Document(part) => document(part),
        Attachment::Words(words) => input_text(&words),
    }
}

fn image(part: &ImagePart) -> Value {
    let (field, address) = match &part.source {
        MediaSource::Url { url } => ("image_url", url.clone()),
        MediaSource::Base64 { media_type, data } => ("image_url", data_url(media_type, data)),
        MediaSource::ProviderFile { file_id, .. } => ("file_id", file_id.clone()),
    };
    let detail = part.detail.as_deref().unwrap_or("auto");
    json!({"type": "input_image", field: address, "detail": detail})
}

fn document(part: &DocumentPart) -> Value {
    match &part.source {
        MediaSource::Url { url } => json!({"type": "input_file", "file_url": url}),
        MediaSource::Base64 { media_type, data } => json!({
            "type": "input_file",
            "filename": part.name.as_deref().unwrap_or("document"),
            "file_data": data_url(media_type, data),
        }),
        MediaSource::ProviderFile { file_id, .. } => json!({"type": "input_file", "file_id": file_id}),
    }
}
