//! Retains fields that must return to the provider: reasoning in its various forms, and fields that
//! only the provider understands.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::fields::{self, Fields};
use crate::opaque::Opaque;
use crate::room::Room;
use values::json::{Object, RawJson, Value};
use values::message::ProviderFields;

/// Texts that a stream sends in pieces.
const STREAMED_TEXTS: [&str; 2] = ["reasoning_content", "reasoning"];
/// The list of blocks of which a stream sends pieces.
const DETAILS: &str = "reasoning_details";
/// Fields that the decoder reads itself, and output that providers reject in requests.
const NOT_RETAINED: [&str; 15] = [
    "role",
    "content",
    "refusal",
    "tool_calls",
    "function_call",
    "annotations",
    "audio",
    "channel",
    "executed_tools",
    "images",
    "name",
    "prefix",
    "token_id",
    "token_ids",
    "logprobs",
];

/// Returns whether a field of this name holds reasoning. Reasoning alone does not count as content.
pub(super) fn is_reasoning(name: &str) -> bool {
    STREAMED_TEXTS.contains(&name) || name == DETAILS
}

/// The most fields of a message that are retained; a message with more is invalid.
const MAX_FIELDS: usize = 64;

/// Fields of a completion that is being assembled.
#[derive(Debug, Default)]
pub(super) struct RetainedFields(Vec<(String, RetainedField)>);

#[derive(Debug)]
enum RetainedField {
    Text(String),
    Details(Vec<Opaque>),
    Raw(String),
}

impl RetainedFields {
    /// Reads the fields of a message or, unless it is `whole`, of a piece of one.
    pub(super) fn take(&mut self, message: &Fields<'_>, whole: bool, room: &mut Room) -> Result<(), Fault> {
        for (name, raw) in message
            .iter()
            .filter(|(name, raw)| !NOT_RETAINED.contains(name) && !is_empty(raw))
        {
            if self.0.len() >= MAX_FIELDS && !self.0.iter().any(|(known, _)| known == name) {
                continue;
            }
            if !whole
                && STREAMED_TEXTS.contains(&name)
                && let Some(text) = fields::text(raw)
            {
                self.take_text(name, &text);
            } else if !whole
                && name == DETAILS
                && let Some(items) = fields::list(raw)
            {
                self.take_details(name, &items, room)?;
            } else {
                *self.slot(name, || RetainedField::Raw(String::new())) = RetainedField::Raw(raw.get().to_owned());
            }
        }
        Ok(())
    }

    /// Returns the fields; `None` if there are none. A field that arrived in one piece is verbatim.
    pub(super) fn finish(self, provider: &str, needs_owner: bool) -> Option<ProviderFields> {
        let fields = self
            .0
            .into_iter()
            .filter_map(|(name, field)| Some((name, RawJson::new(field.finish()?))));
        let fields: Vec<_> = fields.collect();
        (needs_owner || !fields.is_empty()).then(|| ProviderFields {
            fields,
            ..ProviderFields::owner(provider)
        })
    }

    fn take_text(&mut self, name: &str, text: &str) {
        match self.slot(name, || RetainedField::Text(String::new())) {
            RetainedField::Text(known) => known.push_str(text),
            other => *other = RetainedField::Text(text.to_owned()),
        }
    }

    fn take_details(&mut self, name: &str, items: &[&RawValue], room: &mut Room) -> Result<(), Fault> {
        let field = self.slot(name, || RetainedField::Details(Vec::new()));
        if !matches!(field, RetainedField::Details(_)) {
            *field = RetainedField::Details(Vec::new());
        }
        let RetainedField::Details(blocks) = field else {
            return Ok(());
        };
        for item in items {
            let fits = blocks.last_mut().filter(|last| continues_with(last, item));
            if let Some(last) = fits {
                merge(last, item, room)?;
            } else {
                room.take(1)?;
                blocks.push(Opaque::new(item.get()));
            }
        }
        Ok(())
    }

    fn slot(&mut self, name: &str, empty: impl FnOnce() -> RetainedField) -> &mut RetainedField {
        let position = self.0.iter().position(|(known, _)| known == name).unwrap_or_else(|| {
            self.0.push((name.to_owned(), empty()));
            self.0.len() - 1
        });
        &mut self.0[position].1
    }
}

impl RetainedField {
    fn finish(self) -> Option<String> {
        match self {
            Self::Text(text) => (!text.is_empty()).then(|| Value::from(text).to_string()),
            Self::Details(blocks) => {
                let blocks: Vec<String> = blocks.into_iter().map(Opaque::finish).collect();
                (!blocks.is_empty()).then(|| format!("[{}]", blocks.join(",")))
            }
            Self::Raw(raw) => Some(raw),
        }
    }
}

/// Returns whether the next block is a piece of this one: it has the same type and index, and no
/// other id.
pub(super) fn continues_with(block: &Opaque, next: &RawValue) -> bool {
    let (Some(mine), Some(next)) = (key(block), fields::object(next).map(|next| BlockKey::of(&next))) else {
        return false;
    };
    let same_id = mine.id == next.id || mine.id.is_none() || next.id.is_none();
    // An encrypted block never arrives in pieces, since it can't be reassembled.
    let in_pieces = mine.kind.as_ref().is_some_and(|kind| !kind.contains("encrypted"));
    in_pieces && same_id && (mine.kind, mine.index) == (next.kind, next.index)
}

/// Adds a piece to a block.
pub(super) fn merge(block: &mut Opaque, next: &RawValue, room: &mut Room) -> Result<(), Fault> {
    // A piece that is nested too deeply adds nothing. The block is parsed first, so that it is
    // parsed only once, even with many such pieces.
    let known = block.object(room)?;
    match room.read(next.get())? {
        Some(Value::Object(next)) => merge_objects(known, next, room),
        _ => Ok(()),
    }
}

fn key(block: &Opaque) -> Option<BlockKey<'_>> {
    let Some(merged) = block.merged() else {
        return Fields::parse(block.raw()).map(|fields| BlockKey::of(&fields));
    };
    let text = |name: &str| merged.get(name).and_then(Value::as_str).map(Cow::Borrowed);
    Some(BlockKey {
        kind: text("type"),
        id: text("id"),
        index: merged.get("index").and_then(Value::as_u64),
    })
}

#[derive(Debug)]
struct BlockKey<'a> {
    kind: Option<Cow<'a, str>>,
    id: Option<Cow<'a, str>>,
    index: Option<u64>,
}

impl<'a> BlockKey<'a> {
    fn of(fields: &Fields<'a>) -> Self {
        Self {
            kind: fields.borrowed_text("type"),
            id: fields.borrowed_text("id"),
            index: fields.count("index"),
        }
    }
}

fn is_empty(raw: &RawValue) -> bool {
    matches!(raw.get(), "\"\"" | "[]" | "{}")
}

/// Texts with these names arrive in pieces. Other texts arrive once.
const PIECES: [&str; 4] = ["text", "summary", "data", "thinking"];

fn merge_objects(known: &mut Object, next: Object, room: &mut Room) -> Result<(), Fault> {
    for (name, value) in next {
        match (known.get_mut(&name), value) {
            (Some(_), Value::Null) => {}
            (Some(Value::String(known)), Value::String(text)) if PIECES.contains(&name.as_str()) => {
                known.push_str(&text);
            }
            (Some(Value::String(known)), Value::String(text)) if text.is_empty() && !known.is_empty() => {}
            (Some(Value::Array(known)), Value::Array(items)) => merge_lists(known, items, room)?,
            (old, value) => {
                room.take_instead(old.as_deref(), &value)?;
                known.insert(name, value);
            }
        }
    }
    Ok(())
}

/// Merges the texts of a thinking block, which are themselves a list of blocks.
fn merge_lists(known: &mut Vec<Value>, items: Vec<Value>, room: &mut Room) -> Result<(), Fault> {
    for item in items {
        match (known.last_mut(), item) {
            (Some(Value::Object(last)), Value::Object(item))
                if last.get("type") == item.get("type") && is_text(&item) =>
            {
                merge_objects(last, item, room)?;
            }
            (_, item) => {
                room.take_values([&item])?;
                known.push(item);
            }
        }
    }
    Ok(())
}

fn is_text(block: &Object) -> bool {
    block.get("type").and_then(Value::as_str) == Some("text")
}

/// Returns the readable words of a thinking block or of a detail of reasoning.
pub(super) fn words(block: &Fields<'_>) -> String {
    ["thinking", "text", "summary"]
        .into_iter()
        .find_map(|name| {
            let raw = block.get(name)?;
            let list = || fields::list(raw).map(|items| items.into_iter().filter_map(item_words).collect());
            fields::text(raw).or_else(list)
        })
        .unwrap_or_default()
}

fn item_words(item: &RawValue) -> Option<String> {
    fields::text(item).or_else(|| fields::object(item)?.text("text"))
}
