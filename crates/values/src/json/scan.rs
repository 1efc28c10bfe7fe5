//! Scans a JSON text once before it is decoded, for mistakes that no decoder reports.
//!
//! - Depth is limited.
//! - Values are counted, since a decoded value takes up to a hundred times the memory of its text.
//! - A repeated key is rejected, since parsers disagree about which of its values counts.
//! - NUL characters are rejected.
//! - An integer beyond 64 bits is rejected, since it would be rounded to a floating-point number:
//!   18446744073709551617 and 18446744073709551618 would be equal.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

/// The deepest nesting that the parser itself accepts.
const PARSER_DEPTH: usize = 120;

/// An integer from here on may have more than 64 bits.
const LARGE: f64 = 9_223_372_036_854_775_808.0;

/// The mistake in a JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScanFault {
    /// The text is not JSON; the message names line and column.
    Syntax(String),
    /// The text is nested deeper than allowed.
    TooDeep(usize),
    /// The text has more values than allowed.
    TooManyValues(usize),
    /// A string or a key contains a NUL character.
    Nul(String),
    /// An object has a key twice.
    DuplicateKey(String),
    /// An integer has more than 64 bits.
    LargeInteger(String),
}

/// Checks a JSON text. Each object, array, string, number, boolean and null is a value.
pub fn scan_json(text: &str, max_depth: usize, max_values: usize) -> Result<(), ScanFault> {
    let mut walk = Walk {
        max_depth: max_depth.min(PARSER_DEPTH),
        max_values,
        is_stored: true,
        ..Walk::default()
    };
    walk.over(text)?;
    // The decoder does not report whether a large number was written as an integer. So the text is
    // read again, which is rare.
    walk.refused = walk.has_large.then(|| first_large_integer(text)).flatten();
    if walk.refused.is_some() {
        (walk.values, walk.numbers) = (0, 0);
        walk.over(text)?;
    }
    Ok(())
}

/// Checks only that no object of a JSON text has the same key twice.
pub(super) fn check_keys(text: &str) -> Result<(), serde_json::Error> {
    let mut walk = Walk {
        max_depth: usize::MAX,
        max_values: usize::MAX,
        ..Walk::default()
    };
    walk.read(text)
}

/// Returns the first integer of more than 64 bits, as its index among the numbers of the text, from
/// 0.
fn first_large_integer(json: &str) -> Option<usize> {
    let (mut rest, mut count) = (json, 0);
    while let Some(start) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        rest = &rest[start..];
        if let Some(text) = rest.strip_prefix('"') {
            rest = after_string(text);
            continue;
        }
        let end = rest.find(|c: char| !c.is_ascii_digit() && !"+-.eE".contains(c));
        let (number, after) = rest.split_at(end.unwrap_or(rest.len()));
        let is_integer = !number.contains(['.', 'e', 'E']);
        if is_integer && number.parse::<i64>().is_err() && number.parse::<u64>().is_err() {
            return Some(count);
        }
        (rest, count) = (after, count + 1);
    }
    None
}

/// Returns the text after a string whose first quote was read.
fn after_string(text: &str) -> &str {
    let mut is_escaped = false;
    let end = text.find(|c| {
        let is_end = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_end
    });
    end.map_or("", |end| &text[end + 1..])
}

/// Returns a JSON pointer's token for a key.
pub fn escape_token(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}

#[derive(Default)]
struct Walk {
    max_depth: usize,
    max_values: usize,
    /// Whether to reject values that the store can't hold: NUL characters and integers of more than
    /// 64 bits.
    is_stored: bool,
    values: usize,
    numbers: usize,
    /// Whether a number may be an integer of more than 64 bits.
    has_large: bool,
    /// The index of the number that is such an integer.
    refused: Option<usize>,
    path: Vec<Step>,
    fault: Option<ScanFault>,
}

enum Step {
    Key(String),
    Index(usize),
}

impl Walk {
    fn over(&mut self, text: &str) -> Result<(), ScanFault> {
        let read = self.read(text);
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => read.map_err(|error| ScanFault::Syntax(error.to_string())),
        }
    }

    fn read(&mut self, text: &str) -> Result<(), serde_json::Error> {
        let mut deserializer = serde_json::Deserializer::from_str(text);
        (Node { walk: self }).deserialize(&mut deserializer)?;
        deserializer.end()
    }

    fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |pointer, step| match step {
            Step::Key(key) => format!("{pointer}/{}", escape_token(key)),
            Step::Index(index) => format!("{pointer}/{index}"),
        })
    }

    /// Stores the fault separately, since the parser's error holds only text.
    fn fail<E: serde::de::Error>(&mut self, fault: ScanFault) -> E {
        self.fault = Some(fault);
        E::custom("the scan ended")
    }

    fn check_text<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        if self.is_stored && text.contains('\0') {
            let pointer = self.pointer();
            return Err(self.fail(ScanFault::Nul(pointer)));
        }
        Ok(())
    }

    fn count_number<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.refused == Some(self.numbers) {
            let pointer = self.pointer();
            return Err(self.fail(ScanFault::LargeInteger(pointer)));
        }
        self.numbers += 1;
        Ok(())
    }

    fn count_value<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.values += 1;
        if self.values > self.max_values {
            let limit = self.max_values;
            return Err(self.fail(ScanFault::TooManyValues(limit)));
        }
        Ok(())
    }

    fn enter<E: serde::de::Error>(&mut self, step: Step) -> Result<(), E> {
        self.path.push(step);
        if self.path.len() > self.max_depth {
            let limit = self.max_depth;
            return Err(self.fail(ScanFault::TooDeep(limit)));
        }
        Ok(())
    }
}

struct Node<'w> {
    walk: &'w mut Walk,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.walk.count_value()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<(), E> {
        self.walk.count_number()
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<(), E> {
        self.walk.count_number()
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<(), E> {
        self.walk.has_large |= number.abs() >= LARGE;
        self.walk.count_number()
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        self.walk.check_text(text)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let walk = self.walk;
        walk.enter(Step::Index(0))?;
        while items.next_element_seed(Node { walk: &mut *walk })?.is_some() {
            if let Some(Step::Index(index)) = walk.path.last_mut() {
                *index += 1;
            }
        }
        walk.path.pop();
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let walk = self.walk;
        let mut seen = HashSet::new();
        walk.enter(Step::Key(String::new()))?;
        while let Some(key) = entries.next_key::<String>()? {
            if let Some(step) = walk.path.last_mut() {
                *step = Step::Key(key.clone());
            }
            if seen.contains(&key) {
                walk.fault = Some(ScanFault::DuplicateKey(walk.pointer()));
                return Err(A::Error::custom(format_args!("the key {key:?} appears twice")));
            }
            walk.check_text(&key)?;
            seen.insert(key);
            entries.next_value_seed(Node { walk: &mut *walk })?;
        }
        walk.path.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fault_is_found_with_its_pointer() {
        let cases = [
            (
                r#"{"a": [1, {"b/c": "x\u0000y"}]}"#,
                ScanFault::Nul("/a/1/b~1c".to_owned()),
            ),
            (r#"{"a\u0000": 1}"#, ScanFault::Nul("/a\0".to_owned())),
            (
                r#"{"a": {"b": 1, "c": [], "b": 2}}"#,
                ScanFault::DuplicateKey("/a/b".to_owned()),
            ),
            (r#"[[[[["deep"]]]]]"#, ScanFault::TooDeep(4)),
        ];
        for (text, fault) in cases {
            assert_eq!(scan_json(text, 4, 100), Err(fault), "{text}");
        }
        assert_eq!(scan_json(r#"{"a": [[["b", -1, 2.5, true, null]]]}"#, 4, 100), Ok(()));
        for text in [
            "",
            "{",
            "[1,]",
            "01",
            "{\"a\": 1} x",
            "\"\u{1}\"",
            "1e999",
            r#""\ud800""#,
        ] {
            assert!(matches!(scan_json(text, 4, 100), Err(ScanFault::Syntax(_))), "{text}");
        }
    }

    #[test]
    fn an_integer_that_would_be_rounded_is_found() {
        for (text, pointer) in [
            ("18446744073709551616", Some("")),
            ("[18446744073709551615, -9223372036854775809]", Some("/1")),
            (
                r#"{"a": [1, "2", 3.5e0, {"9999999999999999999999": 99999999999999999999}]}"#,
                Some("/a/3/9999999999999999999999"),
            ),
            (
                r#"["18446744073709551616", "\"99999999999999999999\\", 1e30, -0]"#,
                None,
            ),
            (
                "[1e19, 123456789012345678901234.5, -9223372036854775808, 18446744073709551615]",
                None,
            ),
        ] {
            let expected = pointer.map_or(Ok(()), |pointer| Err(ScanFault::LargeInteger(pointer.to_owned())));
            assert_eq!(scan_json(text, 10, 100), expected, "{text}");
        }
    }

    #[test]
    fn values_of_every_kind_are_counted() {
        let text = r#"{"a": [{}, [], "b", 1, -1, 2.5, true, null], "c": {"d": 0}}"#;
        assert_eq!(scan_json(text, 4, 12), Ok(()));
        assert_eq!(scan_json(text, 4, 11), Err(ScanFault::TooManyValues(11)));
        let rest_is_not_read = format!("[{}}}", "0,".repeat(1_000));
        assert_eq!(
            scan_json(&rest_is_not_read, 4, 1_000),
            Err(ScanFault::TooManyValues(1_000))
        );
    }

    #[test]
    fn a_million_brackets_do_not_overflow_the_stack() {
        assert_eq!(
            scan_json(&"[".repeat(1_000_000), usize::MAX, usize::MAX),
            Err(ScanFault::TooDeep(PARSER_DEPTH))
        );
        assert_eq!(
            scan_json(&r#"{"a":"#.repeat(1_000_000), 64, usize::MAX),
            Err(ScanFault::TooDeep(64))
        );
    }
}
