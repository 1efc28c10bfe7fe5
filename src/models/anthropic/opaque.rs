//! Retains blocks without a neutral form, such as those of the provider's own tools: verbatim
//! unless they arrive in pieces.

use crate::json::{Object, Value};
use crate::models::room::{Full, Room};
use crate::models::wire::Fields;

/// A block in the making.
#[derive(Debug)]
pub(super) struct Opaque {
    raw: String,
    /// The pieces of the field `input`.
    input: String,
    /// The block with what its other pieces added.
    merged: Option<Object>,
}

impl Opaque {
    /// Stores a block as it began.
    pub(super) fn new(raw: &str) -> Self {
        Self {
            raw: raw.to_owned(),
            input: String::new(),
            merged: None,
        }
    }

    /// Adds a piece of the input.
    pub(super) fn push_input(&mut self, piece: &str) {
        self.input.push_str(piece);
    }

    /// Adds a piece of an unknown kind: texts and lists are extended, all else is set.
    pub(super) fn merge(&mut self, delta: &Fields<'_>, room: &mut Room) -> Result<(), Full> {
        let known = room.merged(&mut self.merged, &self.raw)?;
        for (name, raw) in delta.iter().filter(|(name, _)| *name != "type") {
            let Some(value) = room.read(raw.get())? else { continue };
            match (known.get_mut(name), value) {
                (Some(Value::String(known)), Value::String(text)) => known.push_str(&text),
                (Some(Value::Array(known)), Value::Array(items)) => {
                    room.take_values(&items)?;
                    known.extend(items);
                }
                (old, value) => {
                    room.take_instead(old.as_deref(), &value)?;
                    known.insert(name.to_owned(), value);
                }
            }
        }
        Ok(())
    }

    /// Returns the JSON text of the block.
    pub(super) fn finish(self) -> String {
        let raw = self.merged.map_or(self.raw, |merged| Value::Object(merged).to_string());
        // An input that was cut off is no JSON and would spoil the block.
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&self.input).is_ok();
        match Fields::parse(&raw) {
            Some(fields) if is_json => with_input(&fields, self.input.trim()),
            _ => raw,
        }
    }
}

fn with_input(fields: &Fields<'_>, input: &str) -> String {
    let others = fields.iter().filter(|(name, _)| *name != "input");
    let others = others.map(|(name, raw)| format!("{}:{raw},", Value::from(name)));
    format!("{{{}\"input\":{input}}}", others.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(raw: &str, input: &[&str], deltas: &[&str]) -> String {
        let mut block = Opaque::new(raw);
        for piece in input {
            block.push_input(piece);
        }
        for delta in deltas {
            block
                .merge(&Fields::parse(delta).unwrap(), &mut Room::new(100))
                .unwrap();
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
                &[
                    r#"{"type": "compaction_delta", "content": "ab"}"#,
                    r#"{"type": "compaction_delta", "content": "c"}"#,
                ],
                r#"{"content":"abc","type":"compaction"}"#,
            ),
            (
                r#"{"type": "x", "l": [1]}"#,
                &[],
                &[r#"{"type": "y", "l": [2], "n": null}"#],
                r#"{"l":[1,2],"type":"x"}"#,
            ),
        ] {
            assert_eq!(merged(raw, input, deltas), expected, "{raw} {input:?} {deltas:?}");
        }
    }
}
