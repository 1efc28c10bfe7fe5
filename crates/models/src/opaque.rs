//! Retains blocks without a neutral form: verbatim if they arrive whole, reassembled if they arrive
//! in pieces.

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::fault::Fault;
use super::fields::{Fields, object_text};
use super::room::Room;
use values::json::{Object, Value};

/// A block under construction.
#[derive(Debug)]
pub(super) struct Opaque {
    raw: String,
    /// The pieces of the field `input`, if they are JSON text.
    input: String,
    /// The block with its other pieces merged.
    merged: Option<Object>,
}

impl Opaque {
    /// Makes a block from its JSON, which may be only its beginning.
    pub(super) fn new(raw: &str) -> Self {
        Self {
            raw: raw.to_owned(),
            input: String::new(),
            merged: None,
        }
    }

    /// Adds a piece of the text of the field `input`.
    pub(super) fn push_input(&mut self, piece: &str) {
        self.input.push_str(piece);
    }

    /// Merges a piece: texts and lists are appended, and other values are replaced. Objects are
    /// merged down to `depth` levels; deeper values are replaced.
    pub(super) fn merge<'n, 'r>(
        &mut self,
        piece: impl Iterator<Item = (&'n str, &'r RawValue)>,
        depth: usize,
        room: &mut Room,
    ) -> Result<(), Fault> {
        let known = self.object(room)?;
        for (name, raw) in piece {
            if let Some(value) = room.read(raw.get())? {
                add(field(known, name, room)?, value, depth, room)?;
            }
        }
        Ok(())
    }

    /// Returns the object that further pieces are merged into. It is parsed when the first piece
    /// arrives. A text that is not an object, or is nested too deeply, becomes an empty object.
    pub(super) fn object(&mut self, room: &mut Room) -> Result<&mut Object, Fault> {
        if self.merged.is_none() {
            let object = match room.read(&self.raw)? {
                Some(Value::Object(object)) => object,
                _ => Object::new(),
            };
            room.take_values(object.values())?;
            self.merged = Some(object);
        }
        Ok(self.merged.get_or_insert_default())
    }

    /// Returns the text of the block as it began.
    pub(super) fn raw(&self) -> &str {
        &self.raw
    }

    /// Returns the block with its pieces merged; `None` if no piece arrived.
    pub(super) fn merged(&self) -> Option<&Object> {
        self.merged.as_ref()
    }

    /// Returns the JSON text of the block.
    pub(super) fn finish(self) -> String {
        self.finish_mended(|_| {})
    }

    /// Returns the JSON text of the block. If pieces arrived, `mend` changes the merged block
    /// first.
    pub(super) fn finish_mended(mut self, mend: impl FnOnce(&mut Object)) -> String {
        if let Some(merged) = &mut self.merged {
            mend(merged);
        }
        let raw = self.merged.map_or(self.raw, |merged| Value::Object(merged).to_string());
        // An input that was cut off is not valid JSON and would make the block invalid.
        let is_json = serde_json::from_str::<IgnoredAny>(&self.input).is_ok();
        let with_input = Fields::parse(&raw).filter(|_| is_json).map(|fields| {
            let others = fields.iter().filter(|(name, _)| *name != "input");
            let others = others.map(|(name, raw)| (name, raw.get()));
            object_text(others.chain([("input", self.input.trim())]))
        });
        with_input.unwrap_or(raw)
    }
}

/// Returns a field, which is null if there was none.
fn field<'a>(known: &'a mut Object, name: &str, room: &mut Room) -> Result<&'a mut Value, Fault> {
    if !known.contains_key(name) {
        room.take(1)?;
    }
    Ok(known.entry(name).or_insert(Value::Null))
}

fn add(known: &mut Value, piece: Value, depth: usize, room: &mut Room) -> Result<(), Fault> {
    match (known, piece) {
        (Value::String(known), Value::String(text)) => known.push_str(&text),
        (Value::Array(known), Value::Array(items)) => {
            room.take_values(&items)?;
            known.extend(items);
        }
        (Value::Object(known), Value::Object(fields)) if depth > 0 => {
            for (name, value) in fields {
                add(field(known, &name, room)?, value, depth - 1, room)?;
            }
        }
        // A result begins as an object, but its pieces are lists of its content.
        (Value::Object(known), Value::Array(items)) if depth > 0 => {
            add(field(known, "content", room)?, Value::Array(items), 0, room)?;
        }
        (known, value) => {
            room.take_instead(Some(known), &value)?;
            *known = value;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(raw: &str, input: &[&str], deltas: &[&str], depth: usize) -> String {
        let mut block = Opaque::new(raw);
        for piece in input {
            block.push_input(piece);
        }
        for delta in deltas {
            let delta = Fields::parse(delta).unwrap();
            block.merge(delta.iter(), depth, &mut Room::new(100)).unwrap();
        }
        block.finish()
    }

    #[test]
    fn a_block_is_verbatim_until_a_piece_changes_it() {
        let block = r#"{"type": "x", "n": 1e2, "input": {}}"#;
        for (raw, input, deltas, expected) in [
            (block, &[][..], &[][..], block),
            (block, &["", " "], &[], block),
            (
                block,
                &[r#"{"a": "#, "1.0}"],
                &[],
                r#"{"type":"x","n":1e2,"input":{"a": 1.0}}"#,
            ),
            (block, &[r#"{"a": "#], &[], block),
            (
                r#"{"type": "compaction", "content": null}"#,
                &[],
                &[r#"{"content": "ab"}"#, r#"{"content": "c"}"#],
                r#"{"content":"abc","type":"compaction"}"#,
            ),
            (
                r#"{"type": "x", "l": [1]}"#,
                &[],
                &[r#"{"l": [2], "n": null}"#],
                r#"{"l":[1,2],"type":"x"}"#,
            ),
        ] {
            assert_eq!(merged(raw, input, deltas, 0), expected, "{raw} {input:?} {deltas:?}");
        }
    }

    #[test]
    fn pieces_are_put_together() {
        for (start, deltas, expected) in [
            (
                r#"{"guardContent": {"n": 1e2}}"#,
                &[][..],
                r#"{"guardContent": {"n": 1e2}}"#,
            ),
            (
                r#"{"toolResult":{"toolUseId":"a","status":"success"}}"#,
                &[r#"{"toolResult":[{"text":"x"}]}"#, r#"{"toolResult":[{"json":{}}]}"#],
                r#"{"toolResult":{"content":[{"text":"x"},{"json":{}}],"status":"success","toolUseId":"a"}}"#,
            ),
            (
                r#"{"image":{"format":"png"}}"#,
                &[
                    r#"{"image":{"source":{"bytes":"AA"}}}"#,
                    r#"{"image":{"source":{"bytes":"BB"}}}"#,
                ],
                r#"{"image":{"format":"png","source":{"bytes":"AABB"}}}"#,
            ),
        ] {
            assert_eq!(merged(start, &[], deltas, 8), expected);
        }
    }
}
