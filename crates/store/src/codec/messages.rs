//! Lists of messages as JSON arrays, in segments and outputs of runs. Each message retains fields
//! that a later version wrote.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;

use serde::Deserialize;
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;

use super::payload::{DecodeError, EncodeError};
use values::ids::StepId;
use values::json::{Value, json_length, read_open, write_open};
use values::message::Message;

/// Encodes messages as a JSON array, not yet compressed.
pub(crate) fn encode_messages<'a>(
    messages: impl IntoIterator<Item = &'a Arc<Message>>,
) -> Result<Vec<u8>, EncodeError> {
    let mut bytes = Vec::with_capacity(1024);
    write_messages(&mut bytes, messages).map_err(EncodeError::Json)?;
    Ok(bytes)
}

/// Decodes messages. Also returns the sum of their sizes as JSON, without the separators.
///
/// This is the largest part of loading a history, so it must be fast. To find unknown fields, it
/// encodes the messages again and compares the bytes, at a fraction of the cost of decoding. Only
/// if the bytes differ does it check message by message. So a new field of messages must be
/// omitted when it has its default value. Otherwise all older lists would take the slow path.
pub(super) fn read_messages(bytes: &[u8]) -> Result<(Vec<Arc<Message>>, usize), DecodeError> {
    let messages: Vec<Arc<Message>> = serde_json::from_slice(bytes).map_err(DecodeError::Json)?;
    let mut unmatched = Unmatched(bytes);
    if write_messages(&mut unmatched, &messages).is_ok() && unmatched.0.is_empty() {
        let punctuation = "[]".len() + messages.len().saturating_sub(1);
        return Ok((messages, bytes.len() - punctuation));
    }
    let stored: Vec<Value> = serde_json::from_slice(bytes).map_err(DecodeError::Json)?;
    let messages: Result<Vec<_>, _> = stored.iter().map(read_message).collect();
    let messages = messages.map_err(DecodeError::Json)?;
    let length = messages.iter().map(|message| json_length(&**message)).sum();
    Ok((messages, length))
}

/// Reads some messages of a list, and counts all. Adds no copy of their text.
pub(super) fn read_part(bytes: &[u8], part: MessagePart<'_>) -> Result<(Vec<Arc<Message>>, usize), DecodeError> {
    let all: Vec<&RawValue> = serde_json::from_slice(bytes).map_err(DecodeError::Json)?;
    let texts = all.iter().map(|message| message.get());
    let messages: Result<Vec<_>, _> = match part {
        MessagePart::Last(count) => texts.skip(all.len().saturating_sub(count)).map(read_text).collect(),
        MessagePart::OfSteps(steps) => {
            let is_asked = |text: &&str| match serde_json::from_str::<OfStep>(text) {
                Ok(OfStep { tags }) => tags.step_id.is_some_and(|id| steps.contains(&id)),
                Err(_) => true,
            };
            texts.filter(is_asked).map(read_text).collect()
        }
    };
    Ok((messages.map_err(DecodeError::Json)?, all.len()))
}

/// Reads one message, as [`read_messages`] does.
fn read_text(text: &str) -> Result<Arc<Message>, serde_json::Error> {
    let message: Arc<Message> = serde_json::from_str(text)?;
    let mut unmatched = Unmatched(text.as_bytes());
    if serde_json::to_writer(&mut unmatched, &message).is_ok() && unmatched.0.is_empty() {
        return Ok(message);
    }
    read_message(&serde_json::from_str(text)?)
}

/// The messages of a list that are read. The others are skipped, at a fraction of the cost.
#[derive(Debug, Clone, Copy)]
pub(crate) enum MessagePart<'a> {
    /// This many at the end, or all if there are fewer.
    Last(usize),
    /// Those that the steps produced.
    OfSteps(&'a BTreeSet<StepId>),
}

/// The field of a message that names its step.
#[derive(Deserialize)]
struct OfStep {
    #[serde(default)]
    tags: StepTag,
}

#[derive(Default, Deserialize)]
struct StepTag {
    step_id: Option<StepId>,
}

/// Reads one message.
pub(super) fn read_message(stored: &Value) -> Result<Arc<Message>, serde_json::Error> {
    let (message, unread) = read_open::<Message>(stored)?;
    Ok(Arc::new(Message { unread, ..message }))
}

/// Writes one message with the stored fields that were not decoded.
pub(super) fn write_message(message: &Message) -> Result<Value, serde_json::Error> {
    write_open(message, &message.unread)
}

fn write_messages<'a>(
    writer: impl io::Write,
    messages: impl IntoIterator<Item = &'a Arc<Message>>,
) -> Result<(), serde_json::Error> {
    serde_json::Serializer::new(writer).collect_seq(messages.into_iter().map(|message| Open(message)))
}

/// A message with the stored fields that were not decoded.
struct Open<'a>(&'a Message);

impl Serialize for Open<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.unread.is_empty() {
            return self.0.serialize(serializer);
        }
        write_open(self.0, &self.0.unread)
            .map_err(S::Error::custom)?
            .serialize(serializer)
    }
}

/// The stored bytes that were not compared yet. Writing a different byte is an error.
struct Unmatched<'a>(&'a [u8]);

impl io::Write for Unmatched<'_> {
    fn write(&mut self, written: &[u8]) -> io::Result<usize> {
        self.write_all(written)?;
        Ok(written.len())
    }

    #[inline]
    fn write_all(&mut self, written: &[u8]) -> io::Result<()> {
        self.0 = self.0.strip_prefix(written).ok_or(io::ErrorKind::InvalidData)?;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn stored() -> Value {
        json!({
            "id": "0190d9b4-5a00-7000-8000-000000000001", "role": "assistant",
            "content": [
                {"type": "text", "text": "hi", "mood": 1},
                {"type": "tool_result", "call_id": "c", "name": "n", "content": [{"type": "text", "text": "x", "y": 2}]},
                {"type": "hologram", "depth": 3},
            ],
            "tags": {"is_trace": true, "origin": "moon"},
            "provider_fields": {"provider": "p", "fields": [], "since": 4},
            "created_at": "2026-01-02T03:04:05Z", "weather": {"is": "mild"},
        })
    }

    #[test]
    fn what_a_later_version_wrote_is_retained_with_its_message() {
        let plain = json!({"id": "0190d9b4-5a00-7000-8000-000000000002", "role": "user", "content": [], "created_at": "2026-01-02T03:04:05Z"});
        let bytes = serde_json::to_vec(&json!([plain, stored()])).unwrap();
        let (messages, length) = read_messages(&bytes).unwrap();
        assert_eq!(length, messages.iter().map(json_length).sum::<usize>());
        assert!(messages[0].unread.is_empty() && !messages[1].unread.is_empty());
        let written: Value = serde_json::from_slice(&encode_messages(&messages).unwrap()).unwrap();
        assert_eq!(written, json!([plain, stored()]));
        assert_eq!(
            read_messages(&encode_messages(&messages).unwrap()).unwrap(),
            (messages, length)
        );
    }

    #[test]
    fn a_part_has_the_asked_messages_as_a_whole_list_has_them() {
        let step = |n: u8| StepId::from_uuid(uuid::Uuid::from_bytes([n; 16]));
        let text = |n: u8| {
            let mut message = stored();
            if n > 1 {
                message["tags"]["step_id"] = json!(step(n));
            }
            message["content"] = json!([{"type": "text", "text": format!("\u{e9} {n} ], {{")}]);
            message
        };
        let bytes = serde_json::to_vec_pretty(&json!([text(1), text(2), text(3)])).unwrap();
        let (all, _) = read_messages(&bytes).unwrap();
        for count in 0..5 {
            let (last, found) = read_part(&bytes, MessagePart::Last(count)).unwrap();
            assert_eq!((&last[..], found), (&all[3 - count.min(3)..], 3));
        }
        for (steps, asked) in [(&[2, 9][..], 1..2), (&[3, 2], 1..3), (&[1], 0..0)] {
            let steps = steps.iter().map(|n| step(*n)).collect();
            let (produced, found) = read_part(&bytes, MessagePart::OfSteps(&steps)).unwrap();
            assert_eq!((&produced[..], found), (&all[asked], 3));
        }
        let damaged = serde_json::to_vec(&json!([text(1), {"tags": {"step_id": 7}}])).unwrap();
        for part in [MessagePart::Last(1), MessagePart::OfSteps(&[].into())] {
            assert!(read_part(&damaged, part).is_err(), "{part:?}");
        }
        assert!(read_part(&bytes[..bytes.len() - 1], MessagePart::Last(1)).is_err());
        assert_eq!(read_part(b"[]", MessagePart::Last(1)).unwrap(), (Vec::new(), 0));
    }

    #[test]
    fn what_this_version_wrote_is_read_whole() {
        let (messages, length) = read_messages(&serde_json::to_vec(&json!([stored()])).unwrap()).unwrap();
        let own = Arc::new(Message {
            unread: values::json::Unread::default(),
            ..(*messages[0]).clone()
        });
        for count in 0..3 {
            let messages = vec![Arc::clone(&own); count];
            let bytes = encode_messages(&messages).unwrap();
            assert_eq!(read_messages(&bytes).unwrap(), (messages, count * length));
            assert!(read_messages(&bytes[1..]).is_err());
        }
    }
}
