//! Encodes the messages of requests. A message always encodes to the same bytes.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::dialect::Dialect;
use super::reasoning::is_reasoning;
use crate::json::{RawJson, Value};
use crate::message::{
    ContentPart, DocumentPart, ImagePart, MediaSource, Message, ProviderFields, Role, ToolCall, ToolResult,
};
use crate::models::encode::{Items, raw};
use crate::models::files::{Attachment, as_words, data_url};
use crate::models::names::{WireIds, arguments, tool_name};
use crate::models::wire::Fields;
use crate::session::Fold;

/// Encodes the instructions above the conversation, if there are any.
pub(super) fn system_message(text: &str) -> Items {
    let mut messages = Items::default();
    if !text.is_empty() {
        messages.push(&WireMessage::plain("system", text));
    }
    messages
}

/// The messages of a request, encoded one after another.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    dialect: Dialect,
    ids: WireIds,
    messages: Items,
    /// Content that the results of the newest step can't hold.
    attachments: Vec<Value>,
}

impl Conversation {
    /// Makes a conversation without messages.
    pub(super) fn new(dialect: &Dialect) -> Self {
        Self {
            dialect: dialect.clone(),
            ids: WireIds::new(dialect.call_ids),
            messages: Items::default(),
            attachments: Vec::new(),
        }
    }

    /// Ends the conversation, and returns its messages.
    pub(super) fn end(&mut self) -> &Items {
        self.flush();
        &self.messages
    }

    fn add(&mut self, message: &Message) {
        // Results of one step stay together, so content that they can't hold follows after the last
        // result.
        if message.role != Role::Tool {
            self.flush();
        }
        let Self { dialect, ids, .. } = self;
        for result in message.tool_results() {
            let id = ids.of_result(result);
            self.messages
                .push(&tool_message(result, &id, dialect, &mut self.attachments));
        }
        let wire = match message.role {
            Role::System => caller_message("system", message, None),
            Role::User | Role::Tool => caller_message("user", message, Some(dialect)),
            Role::Assistant => assistant_message(message, dialect, ids),
        };
        if let Some(wire) = wire {
            self.messages.push(&wire);
        }
    }

    fn flush(&mut self) {
        if !self.attachments.is_empty() {
            let mut wire = WireMessage::new("user");
            wire.set("content", &self.attachments);
            self.messages.push(&wire);
            self.attachments.clear();
        }
    }
}

impl Fold for Conversation {
    fn is_like(&self, other: &Self) -> bool {
        self.dialect == other.dialect
    }

    fn extend<'a>(&mut self, messages: impl Iterator<Item = &'a Message> + Clone) {
        for message in messages {
            self.add(message);
        }
    }

    fn retained(self) -> Self {
        Self {
            messages: self.messages.retained(),
            ..self
        }
    }

    fn bytes(&self) -> usize {
        self.messages.bytes() + self.ids.bytes()
    }
}

/// The fields of a message in their order.
#[derive(Debug)]
struct WireMessage<'a>(Vec<(Cow<'a, str>, WireValue<'a>)>);

/// A field of a message. Most are texts of the request, which may be large and are not copied.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum WireValue<'a> {
    Text(Cow<'a, str>),
    Json(Box<RawValue>),
}

impl Serialize for WireMessage<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'a> WireMessage<'a> {
    fn new(role: &'a str) -> Self {
        let mut message = Self(Vec::new());
        message.set_text("role", role);
        message
    }

    fn plain(role: &'a str, content: impl Into<Cow<'a, str>>) -> Self {
        let mut message = Self::new(role);
        message.set_text("content", content);
        message
    }

    fn set_text(&mut self, name: &'a str, text: impl Into<Cow<'a, str>>) {
        self.0.push((name.into(), WireValue::Text(text.into())));
    }

    fn set(&mut self, name: &'a str, value: &(impl Serialize + ?Sized)) {
        if let Some(value) = raw(value) {
            self.0.push((name.into(), WireValue::Json(value)));
        }
    }

    /// Adds a verbatim field, unless it is not JSON or the message has it already.
    fn set_raw(&mut self, name: impl Into<Cow<'a, str>>, raw: &str) {
        let name = name.into();
        let known = self.0.iter().any(|(known, _)| *known == name);
        if let Some(raw) = checked(raw).filter(|_| !known) {
            self.0.push((name, WireValue::Json(raw)));
        }
    }
}

/// Encodes a message of the caller, with images and files if `media` is given; `None` if nothing is
/// left.
fn caller_message<'a>(role: &'a str, message: &'a Message, media: Option<&Dialect>) -> Option<WireMessage<'a>> {
    let mut wire = WireMessage::new(role);
    if let [ContentPart::Text(part)] = message.content.as_slice()
        && !part.text.is_empty()
    {
        wire.set_text("content", &part.text);
    } else {
        let parts: Vec<Value> = message.content.iter().filter_map(|part| block(part, media)).collect();
        match (parts.as_slice(), message.role) {
            ([], Role::Tool) => return None,
            ([], _) if message.tool_results().next().is_some() => return None,
            ([], _) => wire.set_text("content", ""),
            ([only], _) if only.get("text").is_some() => wire.set("content", &only["text"]),
            (_, Role::System) => wire.set_text("content", message.joined_text()),
            (parts, _) => wire.set("content", parts),
        }
    }
    if let Some(name) = message.name.as_deref().filter(|name| is_speaker_name(name)) {
        wire.set_text("name", name);
    }
    Some(wire)
}

/// Returns whether the protocol accepts the speaker's name. Other names are dropped, so that the
/// request does not fail.
fn is_speaker_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(plain)
}

/// Encodes a message of the model; `None` if nothing of it is sent back, as with reasoning alone.
/// Providers reject a message without content.
fn assistant_message<'a>(message: &'a Message, dialect: &Dialect, ids: &mut WireIds) -> Option<WireMessage<'a>> {
    let own = message
        .provider_fields
        .as_ref()
        .filter(|fields| fields.provider == dialect.provider);
    let calls: Vec<_> = message
        .tool_calls()
        .map(|call| wire_call(call, &ids.of_call(message.id, call), own.is_some()))
        .collect();
    let (mut text, mut refusal) = (Cow::Borrowed(""), Cow::Borrowed(""));
    let mut has_opaque = false;
    for part in &message.content {
        match part {
            ContentPart::Text(part) => text += part.text.as_str(),
            ContentPart::Refusal { text: words } if dialect.refusal_field => refusal += words.as_str(),
            ContentPart::Refusal { text: words } => text += words.as_str(),
            ContentPart::Opaque(part) => has_opaque |= part.provider == dialect.provider,
            // Reasoning is sent back only in the provider's own fields.
            _ => {}
        }
    }
    let carries = |own: &ProviderFields| own.fields.iter().any(is_content);
    if text.is_empty() && refusal.is_empty() && calls.is_empty() && !has_opaque && !own.is_some_and(carries) {
        return None;
    }
    let mut wire = WireMessage::new("assistant");
    if has_opaque {
        wire.set("content", &blocks(message, dialect));
    } else if text.is_empty() && (!calls.is_empty() || !refusal.is_empty()) {
        wire.set("content", &Value::Null);
    } else {
        wire.set_text("content", text);
    }
    if !refusal.is_empty() {
        wire.set_text("refusal", refusal);
    }
    if !calls.is_empty() {
        wire.set("tool_calls", &calls);
    }
    for (name, raw) in own.iter().flat_map(|own| &own.fields) {
        wire.set_raw(name, raw.as_str());
    }
    Some(wire)
}

/// Encodes the parts of a message with provider-specific parts.
fn blocks(message: &Message, dialect: &Dialect) -> Vec<Box<RawValue>> {
    let of_text = |text| raw(&text_block(text));
    let parts = message.content.iter().filter_map(|part| match part {
        ContentPart::Text(part) if !part.text.is_empty() => of_text(&part.text),
        ContentPart::Refusal { text } if !dialect.refusal_field => of_text(text),
        ContentPart::Opaque(part) if part.provider == dialect.provider => checked(part.raw.as_str()),
        _ => None,
    });
    parts.collect()
}

/// Returns whether a provider's own field counts as content in a message without text.
fn is_content((name, raw): &(String, RawJson)) -> bool {
    !is_reasoning(name) && checked(raw.as_str()).is_some()
}

/// Encodes a call. Arguments that are a JSON object go back verbatim.
fn wire_call<'a>(call: &'a ToolCall, id: &str, own: bool) -> WireMessage<'a> {
    let mut wire = WireMessage(Vec::new());
    wire.set_text("id", id.to_owned());
    wire.set_text("type", "function");
    wire.set(
        "function",
        &json!({"arguments": arguments(call), "name": tool_name(&call.name)}),
    );
    let signature = call
        .signature
        .as_deref()
        .filter(|_| own)
        .and_then(Fields::parse)
        .unwrap_or_default();
    for (name, raw) in signature.iter() {
        wire.set_raw(name.to_owned(), raw.get());
    }
    wire
}

/// Encodes a result as text. Sets images and files aside, since the protocol does not allow them in
/// a result.
fn tool_message<'a>(
    result: &'a ToolResult,
    id: &str,
    dialect: &Dialect,
    attachments: &mut Vec<Value>,
) -> WireMessage<'a> {
    let texts: Vec<&str> = result.content.iter().filter_map(ContentPart::as_text).collect();
    let media = result.content.iter().filter_map(|part| media_block(part, dialect));
    let media: Vec<Value> = media.collect();
    let mut text = match texts.as_slice() {
        [only] => Cow::Borrowed(*only),
        texts => Cow::Owned(texts.join("\n")),
    };
    if !media.is_empty() {
        if text.is_empty() {
            text = "The result follows as an attachment.".into();
        }
        let label = format!("Attachments of the result of {} ({id}):", result.name);
        attachments.push(text_block(&label));
        attachments.extend(media);
    }
    let mut wire = WireMessage::plain("tool", text);
    wire.set_text("tool_call_id", id.to_owned());
    wire
}

fn block(part: &ContentPart, media: Option<&Dialect>) -> Option<Value> {
    match part {
        // The history may have empty texts next to other parts, but a request may not.
        ContentPart::Text(part) if part.text.is_empty() => None,
        ContentPart::Text(part) => Some(text_block(&part.text)),
        ContentPart::Refusal { text } => Some(text_block(text)),
        _ => media_block(part, media?),
    }
}

fn text_block(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn media_block(part: &ContentPart, dialect: &Dialect) -> Option<Value> {
    Some(match Attachment::of(part, &dialect.provider)? {
        Attachment::Image(ImagePart {
            source: MediaSource::ProviderFile { file_id, .. },
            ..
        })
        | Attachment::Document(DocumentPart {
            source: MediaSource::ProviderFile { file_id, .. },
            ..
        }) => json!({"type": "file", "file": {"file_id": file_id}}),
        Attachment::Image(part) => image_block(part),
        Attachment::Document(part) => document_block(part),
        Attachment::Elsewhere(words) => text_block(&words),
    })
}

fn image_block(part: &ImagePart) -> Value {
    let mut image = json!({"url": address(&part.source)});
    if let Some(detail) = &part.detail {
        image["detail"] = Value::from(detail.as_str());
    }
    json!({"type": "image_url", "image_url": image})
}

/// Encodes a file. Few servers accept files other than PDFs, so text files are sent as text.
fn document_block(part: &DocumentPart) -> Value {
    if let Some(words) = as_words(part) {
        return text_block(&words);
    }
    let mut file = json!({"file_data": address(&part.source)});
    file["filename"] = Value::from(part.name.as_deref().unwrap_or("document"));
    json!({"type": "file", "file": file})
}

fn address(source: &MediaSource) -> String {
    match source {
        MediaSource::Url { url } => url.clone(),
        MediaSource::Base64 { media_type, data } => data_url(media_type, data),
        MediaSource::ProviderFile { file_id, .. } => file_id.clone(),
    }
}

fn checked(raw: &str) -> Option<Box<RawValue>> {
    RawValue::from_string(raw.to_owned()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_words_goes_as_words() {
        let file = |media_type: &str, data: &str| {
            document_block(&DocumentPart {
                source: MediaSource::Base64 {
                    media_type: media_type.to_owned(),
                    data: data.to_owned(),
                },
                name: Some("a \"b\".md".to_owned()),
            })
        };
        assert_eq!(
            file("text/markdown", "IyBHcsO8w59l"),
            text_block("<file name=\"a \\\"b\\\".md\">\n# Grüße\n</file>")
        );
        assert_eq!(
            file("application/pdf", "JVBE"),
            serde_json::json!({"type": "file", "file": {"filename": "a \"b\".md", "file_data": "data:application/pdf;base64,JVBE"}})
        );
    }
}
