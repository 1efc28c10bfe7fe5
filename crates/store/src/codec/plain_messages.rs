//! Reads the lists of messages that most histories consist of, much faster than the general reader:
//! texts, calls, and results of text, exactly as this version writes them.
//!
//! Accepts a list only if the messages have everything that is stored. So an unknown field, an
//! unknown name, a default value that is spelled out, or another spelling of a value is left to the
//! general reader.

use std::sync::Arc;

use chrono::NaiveDate;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

use values::clock::Timestamp;
use values::ids::{AgentId, ExecutionId, MessageId, StepId};
use values::json::escaped_length;
use values::message::{ContentPart, Coverage, Message, MessageTags, Role, Section, TextPart, ToolCall, ToolResult};

/// Returns the messages of a list and the sum of their sizes as JSON. Returns `None` if the list is
/// for the general reader.
pub(super) fn read_plain_messages(bytes: &[u8]) -> Option<(Vec<Arc<Message>>, usize)> {
    let plain: Vec<PlainMessage> = serde_json::from_slice(bytes).ok()?;
    let punctuation = "[]".len() + plain.len().saturating_sub(1);
    let length = plain.iter().map(|message| message.length).sum::<usize>();
    // Spaces, and letters that are escaped without need, make a text longer.
    (length + punctuation == bytes.len()).then(|| {
        let messages = plain.into_iter().map(|plain| Arc::new(plain.message));
        (messages.collect(), length)
    })
}

/// Reads a field that may be absent, but not null.
fn given<'de, T: Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// A message, and the bytes of its JSON.
struct PlainMessage {
    message: Message,
    length: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MessageFields<'a> {
    id: PlainUuid,
    role: Role,
    #[serde(default, deserialize_with = "given")]
    name: Option<String>,
    content: Vec<PlainPart>,
    #[serde(default, deserialize_with = "given")]
    tags: Option<TagsFields>,
    #[serde(borrow)]
    created_at: &'a str,
}

impl<'de> Deserialize<'de> for PlainMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = MessageFields::deserialize(deserializer)?;
        let created_at = timestamp(fields.created_at);
        let created_at = created_at.ok_or_else(|| D::Error::custom("a time in another form"))?;
        let role = match fields.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let mut length = Length::object()
            .text("id", UUID)
            .text("role", role.len())
            .given("name", fields.name.as_deref())
            .value("content", list_length(&fields.content))
            .text("created_at", fields.created_at.len());
        let tags = match fields.tags {
            Some(tags) => {
                length = length.value("tags", tags.length());
                tags.into_tags()
                    .ok_or_else(|| D::Error::custom("a default is spelled out"))?
            }
            None => MessageTags::default(),
        };
        Ok(Self {
            message: Message {
                name: fields.name,
                ..Message::new(
                    MessageId::from_uuid(fields.id.0),
                    fields.role,
                    fields.content.into_iter().map(|part| part.part).collect(),
                    created_at,
                )
            }
            .with_tags(tags),
            length: length.0,
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TagsFields {
    #[serde(default, deserialize_with = "given")]
    step_id: Option<PlainUuid>,
    #[serde(default, deserialize_with = "given")]
    execution_id: Option<PlainUuid>,
    #[serde(default, deserialize_with = "given")]
    agent_id: Option<PlainUuid>,
    #[serde(default, deserialize_with = "given")]
    is_trace: Option<True>,
    #[serde(default, deserialize_with = "given")]
    is_partial: Option<True>,
    #[serde(default, deserialize_with = "given")]
    context_tokens: Option<u64>,
    #[serde(default, deserialize_with = "given")]
    section: Option<Section>,
    #[serde(default, deserialize_with = "given")]
    covers: Option<CoverageFields>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CoverageFields {
    from: u64,
    to: u64,
}

impl TagsFields {
    fn length(&self) -> usize {
        let mut length = Length::object()
            .uuid("step_id", self.step_id.as_ref())
            .uuid("execution_id", self.execution_id.as_ref())
            .uuid("agent_id", self.agent_id.as_ref())
            .flag("is_trace", self.is_trace.as_ref())
            .flag("is_partial", self.is_partial.as_ref())
            .given("section", self.section.as_ref().map(Section::as_str));
        if let Some(tokens) = self.context_tokens {
            length = length.value("context_tokens", digits(tokens));
        }
        if let Some(CoverageFields { from, to }) = self.covers {
            let covers = Length::object().value("from", digits(from)).value("to", digits(to));
            length = length.value("covers", covers.0);
        }
        length.0
    }

    /// Returns the tags; `None` if they would be written in another way.
    fn into_tags(self) -> Option<MessageTags> {
        if self.section.as_ref().is_some_and(Section::is_messages) {
            return None;
        }
        let tags = MessageTags {
            step_id: self.step_id.map(|id| StepId::from_uuid(id.0)),
            execution_id: self.execution_id.map(|id| ExecutionId::from_uuid(id.0)),
            agent_id: self.agent_id.map(|id| AgentId::from_uuid(id.0)),
            is_trace: self.is_trace.is_some(),
            is_partial: self.is_partial.is_some(),
            context_tokens: self.context_tokens,
            section: self.section.unwrap_or_default(),
            covers: self.covers.map(|CoverageFields { from, to }| Coverage { from, to }),
        };
        Some(tags).filter(|tags| !tags.is_empty())
    }
}

/// A part, and the bytes of its JSON.
struct PlainPart {
    part: ContentPart,
    length: usize,
}

/// The fields of all kinds of parts.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PartFields {
    r#type: PartKind,
    #[serde(default, deserialize_with = "given")]
    text: Option<String>,
    #[serde(default, deserialize_with = "given")]
    id: Option<String>,
    #[serde(default, deserialize_with = "given")]
    call_id: Option<String>,
    #[serde(default, deserialize_with = "given")]
    name: Option<String>,
    #[serde(default, deserialize_with = "given")]
    arguments: Option<String>,
    #[serde(default, deserialize_with = "given")]
    content: Option<Vec<PlainPart>>,
    #[serde(default, deserialize_with = "given")]
    is_error: Option<True>,
    #[serde(default, deserialize_with = "given")]
    signature: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartKind {
    Text,
    ToolCall,
    ToolResult,
}

impl<'de> Deserialize<'de> for PlainPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = PartFields::deserialize(deserializer)?;
        fields
            .into_part()
            .ok_or_else(|| D::Error::custom("a part of another form"))
    }
}

impl PartFields {
    /// Returns the part; `None` if it has other fields than its kind.
    fn into_part(self) -> Option<PlainPart> {
        match self.r#type {
            PartKind::Text => self.into_text(),
            PartKind::ToolCall => self.into_call(),
            PartKind::ToolResult => self.into_result(),
        }
    }

    fn into_text(self) -> Option<PlainPart> {
        let Self {
            r#type: _,
            text: Some(text),
            id: None,
            call_id: None,
            name: None,
            arguments: None,
            content: None,
            is_error: None,
            signature,
        } = self
        else {
            return None;
        };
        let length = Length::object()
            .text("type", "text".len())
            .given("text", Some(&text))
            .given("signature", signature.as_deref());
        let citations = Vec::new();
        Some(length.of(ContentPart::Text(TextPart {
            text,
            citations,
            signature,
        })))
    }

    fn into_call(self) -> Option<PlainPart> {
        let Self {
            r#type: _,
            text: None,
            id: Some(id),
            call_id: None,
            name: Some(name),
            arguments: Some(arguments),
            content: None,
            is_error: None,
            signature,
        } = self
        else {
            return None;
        };
        let length = Length::object()
            .text("type", "tool_call".len())
            .given("id", Some(&id))
            .given("name", Some(&name))
            .given("arguments", Some(&arguments))
            .given("signature", signature.as_deref());
        Some(length.of(ContentPart::ToolCall(ToolCall {
            id,
            name,
            arguments,
            signature,
        })))
    }

    fn into_result(self) -> Option<PlainPart> {
        let Self {
            r#type: _,
            text: None,
            id: None,
            call_id: Some(call_id),
            name: Some(name),
            arguments: None,
            content: Some(content),
            is_error,
            signature: None,
        } = self
        else {
            return None;
        };
        let length = Length::object()
            .text("type", "tool_result".len())
            .given("call_id", Some(&call_id))
            .given("name", Some(&name))
            .value("content", list_length(&content))
            .flag("is_error", is_error.as_ref());
        Some(length.of(ContentPart::ToolResult(ToolResult {
            call_id,
            name,
            content: content.into_iter().map(|part| part.part).collect(),
            is_error: is_error.is_some(),
        })))
    }
}

fn list_length(parts: &[PlainPart]) -> usize {
    let commas = parts.len().saturating_sub(1);
    "[]".len() + commas + parts.iter().map(|part| part.length).sum::<usize>()
}

/// The bytes of an object as JSON.
struct Length(usize);

impl Length {
    fn object() -> Self {
        Self("{}".len())
    }

    /// Adds a field whose value has so many bytes.
    fn value(self, name: &str, bytes: usize) -> Self {
        let comma = usize::from(self.0 > "{}".len());
        Self(self.0 + comma + "\"\":".len() + name.len() + bytes)
    }

    /// Adds a field with a text of so many bytes.
    fn text(self, name: &str, bytes: usize) -> Self {
        self.value(name, bytes + "\"\"".len())
    }

    /// Adds a field with a text, if it is given.
    fn given(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, escaped_length(text)),
            None => self,
        }
    }

    /// Adds a flag, if it is set.
    fn flag(self, name: &str, flag: Option<&True>) -> Self {
        match flag {
            Some(True) => self.value(name, "true".len()),
            None => self,
        }
    }

    /// Adds an id, if it is given.
    fn uuid(self, name: &str, uuid: Option<&PlainUuid>) -> Self {
        match uuid {
            Some(_) => self.text(name, UUID),
            None => self,
        }
    }

    fn of(self, part: ContentPart) -> PlainPart {
        PlainPart { part, length: self.0 }
    }
}

fn digits(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |digits| digits as usize + 1)
}

/// A flag that is set. Flags that are not set are not written.
struct True;

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? {
            return Ok(Self);
        }
        Err(D::Error::invalid_value(Unexpected::Bool(false), &"true"))
    }
}

/// The bytes of an id as text.
const UUID: usize = 36;

/// An id in its usual form, in lower case.
struct PlainUuid(Uuid);

impl<'de> Deserialize<'de> for PlainUuid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&str>::deserialize(deserializer)?;
        let uuid = Uuid::try_parse(text).map_err(D::Error::custom)?;
        if text.len() == UUID && !text.bytes().any(|c| c.is_ascii_uppercase()) {
            return Ok(Self(uuid));
        }
        Err(D::Error::invalid_value(Unexpected::Str(text), &"an id in lower case"))
    }
}

/// Reads a time in the form in which times are written: the seconds, and three, six or nine digits
/// of their fraction as needed.
fn timestamp(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let number = |from: usize, to: usize| {
        let digits = bytes.get(from..to)?;
        digits.iter().try_fold(0_u32, |number, digit| {
            digit.is_ascii_digit().then(|| number * 10 + u32::from(digit - b'0'))
        })
    };
    let has_marks = bytes.len() >= 20
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')]
            .iter()
            .all(|(at, mark)| bytes[*at] == *mark)
        && bytes.ends_with(b"Z");
    if !has_marks {
        return None;
    }
    let nanoseconds = match bytes.len() {
        20 => 0,
        24 | 27 | 30 if bytes[19] == b'.' => {
            let end = bytes.len() - 1;
            // Fewer digits would do if the last three are zero.
            if &bytes[end - 3..end] == b"000" {
                return None;
            }
            number(20, end)? * 10_u32.pow(9 - u32::try_from(end - 20).ok()?)
        }
        _ => return None,
    };
    let year = i32::try_from(number(0, 4)?).ok()?;
    let date = NaiveDate::from_ymd_opt(year, number(5, 7)?, number(8, 10)?)?;
    let time = date.and_hms_nano_opt(number(11, 13)?, number(14, 16)?, number(17, 19)?, nanoseconds)?;
    Some(time.and_utc())
}
