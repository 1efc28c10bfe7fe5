//! Retains blocks without a neutral form: verbatim if they arrive whole, reassembled if they arrive
//! in pieces.

use crate::json::{Object, Value};
use crate::models::room::{Full, Room};
use crate::models::wire::Fields;

/// The most levels of a piece that are put together; what is deeper replaces what was there.
const MAX_DEPTH: usize = 8;

/// A block in the making.
#[derive(Debug)]
pub(super) struct Opaque {
    raw: String,
    /// The block with what its pieces added.
    merged: Option<Object>,
}

impl Opaque {
    /// Stores a block as it is, or as it began.
    pub(super) fn new(raw: &str) -> Self {
        Self {
            raw: raw.to_owned(),
            merged: None,
        }
    }

    /// Adds a piece: texts grow, lists get longer, objects are filled, all else is set.
    pub(super) fn merge(&mut self, delta: &Fields<'_>, room: &mut Room) -> Result<(), Full> {
        let known = room.merged(&mut self.merged, &self.raw)?;
        for (name, raw) in delta.iter() {
            if let Some(value) = room.read(raw.get())? {
                add(slot(known, name, room)?, value, MAX_DEPTH, room)?;
            }
        }
        Ok(())
    }

    /// Returns the JSON text of the block.
    pub(super) fn finish(self) -> String {
        let Some(mut merged) = self.merged else {
            return self.raw;
        };
        // The input of a call comes as pieces of JSON text and goes back as the parsed value.
        if let Some(input) = merged.get_mut("toolUse").and_then(|call| call.get_mut("input"))
            && let Some(value) = input.as_str().map(serde_json::from_str)
        {
            *input = value.unwrap_or_else(|_| Value::Object(Object::new()));
        }
        Value::Object(merged).to_string()
    }
}

/// Returns a field, which is null if there was none.
fn slot<'a>(known: &'a mut Object, name: &str, room: &mut Room) -> Result<&'a mut Value, Full> {
    if !known.contains_key(name) {
        room.take(1)?;
    }
    Ok(known.entry(name).or_insert(Value::Null))
}

fn add(known: &mut Value, piece: Value, depth: usize, room: &mut Room) -> Result<(), Full> {
    match (known, piece) {
        (Value::String(known), Value::String(text)) => known.push_str(&text),
        (Value::Array(known), Value::Array(items)) => {
            room.take_values(&items)?;
            known.extend(items);
        }
        (Value::Object(known), Value::Object(fields)) if depth > 0 => {
            for (name, value) in fields {
                add(slot(known, &name, room)?, value, depth - 1, room)?;
            }
        }
        // A result begins as an object, and its pieces are lists of its content.
        (Value::Object(known), Value::Array(items)) if depth > 0 => {
            add(slot(known, "content", room)?, Value::Array(items), 0, room)?;
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

    #[test]
    fn pieces_are_put_together() {
        for (start, deltas, expected) in [
            (
                r#"{"guardContent": {"n": 1e2}}"#,
                &[][..],
                r#"{"guardContent": {"n": 1e2}}"#,
            ),
            (
                r#"{"toolUse":{"toolUseId":"a","name":"t","type":"server_tool_use"}}"#,
                &[r#"{"toolUse":{"input":"{\"q\":"}}"#, r#"{"toolUse":{"input":"1}"}}"#],
                r#"{"toolUse":{"input":{"q":1},"name":"t","toolUseId":"a","type":"server_tool_use"}}"#,
            ),
            (
                r#"{"toolUse":{"name":"t"}}"#,
                &[r#"{"toolUse":{"input":"{\"cut"}}"#],
                r#"{"toolUse":{"input":{},"name":"t"}}"#,
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
            let mut block = Opaque::new(start);
            for delta in deltas {
                block
                    .merge(&Fields::parse(delta).unwrap(), &mut Room::new(100))
                    .unwrap();
            }
            assert_eq!(block.finish(), expected);
        }
    }
}
