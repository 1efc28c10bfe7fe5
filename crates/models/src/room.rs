//! Limits the separate values that a response retains: parts, citations, and the values of
//! reassembled blocks.
//!
//! Each value takes many times its bytes in the response, so their total number is limited.

use super::fault::Fault;
use values::json::Value;

/// The number of parts that a completion may still have.
#[derive(Debug)]
pub(super) struct Room {
    limit: usize,
    taken: usize,
}

impl Room {
    /// Makes room for `limit` values.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, taken: 0 }
    }

    /// Takes room for `count` more values.
    pub(super) fn take(&mut self, count: usize) -> Result<(), Fault> {
        self.taken = self.taken.saturating_add(count);
        if self.taken > self.limit {
            return Err(Fault::TooManyParts(self.limit));
        }
        Ok(())
    }

    /// Takes room for the values and everything in them.
    pub(super) fn take_values<'a>(&mut self, values: impl IntoIterator<Item = &'a Value>) -> Result<(), Fault> {
        self.take(values.into_iter().map(count).sum())
    }

    /// Takes room for the additional values of a value that replaces another one.
    pub(super) fn take_instead(&mut self, old: Option<&Value>, new: &Value) -> Result<(), Fault> {
        self.take(count(new).saturating_sub(old.map_or(0, count)))
    }

    /// Parses a value; `None` if it is nested too deeply. Fails if the value alone exceeds the
    /// room.
    pub(super) fn read(&self, text: &str) -> Result<Option<Value>, Fault> {
        if most_values(text) > self.limit {
            return Err(Fault::TooManyParts(self.limit));
        }
        Ok(serde_json::from_str(text).ok())
    }
}

/// Counts a value and those in it.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Returns an upper bound of the values in a JSON text without parsing it. Each value is the first
/// one, or follows a bracket or a comma.
fn most_values(text: &str) -> usize {
    let (mut values, mut in_text, mut escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = in_text,
            b'"' => in_text = !in_text,
            b',' | b'[' | b'{' if !in_text => values += 1,
            _ => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_taken_until_there_is_none() {
        let mut room = Room::new(3);
        assert_eq!((room.take(2), room.take(1)), (Ok(()), Ok(())));
        assert_eq!(room.take(1), Err(Fault::TooManyParts(3)));
        assert_eq!(Room::new(3).take(usize::MAX), Err(Fault::TooManyParts(3)));
    }

    #[test]
    fn values_are_counted_before_they_are_read() {
        for (text, values) in [
            ("0", 1),
            (r#""[,{\",[""#, 1),
            (r#""\\""#, 1),
            ("[0,0]", 3),
            (r#"{"a":[{"b":",,"},1]}"#, 5),
        ] {
            let value = Room::new(values).read(text).unwrap().unwrap();
            assert_eq!((most_values(text), count(&value)), (values, values), "{text}");
            assert!(Room::new(values - 1).read(text).is_err(), "{text}");
        }
        let deep = "[".repeat(200) + &"]".repeat(200);
        assert_eq!(Room::new(1_000).read(&deep), Ok(None));
    }
}
