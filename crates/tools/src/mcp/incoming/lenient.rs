//! Parses JSON as some servers write it.
//!
//! JavaScript and Python cut a character into a lone surrogate, and Python writes `NaN`. One such
//! value must not lose the message.

use std::borrow::Cow;

use serde::de::DeserializeOwned;

use values::json::without_mark;

/// The words of other languages for numbers that JSON does not have.
const NO_NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// Parses strict JSON, or else mended JSON. The error comes from the strict parser.
pub(super) fn parse<T: DeserializeOwned>(json: &[u8]) -> Result<T, serde_json::Error> {
    let json = without_mark(json);
    serde_json::from_slice(json).or_else(|error| serde_json::from_slice(&mended(json)).map_err(|_| error))
}

/// Replaces invalid characters by U+FFFD and invalid numbers by `null`. Escapes other mistakes in
/// strings. Leaves valid JSON as it is.
fn mended(json: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(json);
    let mut rest = text.as_bytes();
    let mut mended = Vec::with_capacity(rest.len());
    let mut is_in_string = false;
    while let Some(first) = rest.first() {
        let (length, mended_token) = if is_in_string { in_string(rest) } else { outside(rest) };
        is_in_string ^= *first == b'"';
        let (token, after) = rest.split_at(length);
        mended.extend_from_slice(mended_token.as_deref().map_or(token, str::as_bytes));
        rest = after;
    }
    mended
}

/// Returns the length of the next piece of a string, and its replacement.
fn in_string(text: &[u8]) -> (usize, Option<Cow<'static, str>>) {
    match text {
        [b'\\', b'u', ..] => match (escaped_unit(text), text.get(6..).and_then(escaped_unit)) {
            (None, _) => (1, Some("\\\\".into())),
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, None),
            (Some(0xd800..=0xdfff), _) => (6, Some("\\ufffd".into())),
            (Some(_), _) => (6, None),
        },
        [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => (2, None),
        [b'\\', ..] => (1, Some("\\\\".into())),
        [control @ 0..=0x1f, ..] => (1, Some(format!("\\u{control:04x}").into())),
        _ => {
            let end = text.iter().position(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f));
            (end.unwrap_or(text.len()).max(1), None)
        }
    }
}

/// Returns the length of the next token outside of strings, and its replacement.
fn outside(text: &[u8]) -> (usize, Option<Cow<'static, str>>) {
    let word = NO_NUMBERS.iter().find(|word| text.starts_with(word.as_bytes()));
    if let Some(word) = word {
        return (word.len(), Some("null".into()));
    }
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    let length = text.iter().position(|byte| !is_of_number(byte)).unwrap_or(text.len());
    let number = str::from_utf8(&text[..length]).unwrap_or_default().parse::<f64>();
    let is_too_large = number.is_ok_and(f64::is_infinite);
    (length.max(1), is_too_large.then(|| "null".into()))
}

/// Reads an escape such as `\ud83d`.
fn escaped_unit(text: &[u8]) -> Option<u32> {
    let digits = text.strip_prefix(b"\\u")?.get(..4)?;
    digits
        .iter()
        .try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use values::json::Value;

    #[test]
    fn each_mistake_is_mended_alone() {
        let cases: [(&[u8], Value); 14] = [
            (br#"["a \ud83d", 1]"#, json!(["a \u{fffd}", 1])),
            (br#"["\ude00\ud83d\ude00\ud83dx"]"#, json!(["\u{fffd}😀\u{fffd}x"])),
            (br#"["\ud83d\u0041\ud83d\n"]"#, json!(["\u{fffd}A\u{fffd}\n"])),
            (
                br#"{"a": NaN, "b": [Infinity,-Infinity]}"#,
                json!({"a": null, "b": [null, null]}),
            ),
            (b"[1e400, -1e400, 1e-400, 12e3]", json!([null, null, 0.0, 12e3])),
            (b"[\"caf\xe9\", \"\xff\"]", json!(["caf\u{fffd}", "\u{fffd}"])),
            (b"[\"a\tb\nc\x01\"]", json!(["a\tb\nc\u{1}"])),
            (
                br#"["NaN", "-Infinity 1e400", NaN]"#,
                json!(["NaN", "-Infinity 1e400", null]),
            ),
            (br#"["C:\Users\x\uzzzz", NaN]"#, json!(["C:\\Users\\x\\uzzzz", null])),
            (br#"["\"\\", NaN]"#, json!(["\"\\", null])),
            (br#"["\\ud83d", NaN]"#, json!(["\\ud83d", null])),
            (br#"{"a\udc00": NaN}"#, json!({"a\u{fffd}": null})),
            (b"\xef\xbb\xbf[NaN]", json!([null])),
            (br#"["\u00"]"#, json!(["\\u00"])),
        ];
        for (sent, expected) in cases {
            let words = String::from_utf8_lossy(sent);
            assert_eq!(parse::<Value>(sent).unwrap_or_default(), expected, "{words}");
        }
        for text in [
            "",
            "[1",
            "[NaN",
            "{\"a\": \"\\ud83d",
            "<html>",
            "[1/2] warm",
            "nan",
            "[1Infinity]",
        ] {
            assert!(parse::<Value>(text.as_bytes()).is_err(), "{text}");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4).prop_map(|fields| json!(fields)),
            ]
        })
    }

    /// The inside of a string with mistakes, without an unescaped quote.
    fn any_string() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just(br"\ud83d".to_vec()),
            Just(br"\ude00".to_vec()),
            Just(br#"\""#.to_vec()),
            Just(br"\u12".to_vec()),
            Just(br"\x".to_vec()),
            any::<u8>()
                .prop_filter("ends the string", |byte| !b"\"\\".contains(byte))
                .prop_map(|byte| vec![byte]),
        ];
        prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn valid_json_is_left_as_it_is(value in any_json()) {
            for text in [value.to_string(), format!("{value:#}")] {
                prop_assert_eq!(mended(text.as_bytes()), text.as_bytes());
            }
        }

        #[test]
        fn no_mistake_in_a_string_loses_the_others(string in any_string()) {
            let json = [&b"[\"before\", \""[..], &string, b"\", NaN, \"after\"]"].concat();
            let read = parse::<Value>(&json);
            prop_assert!(read.is_ok(), "{}", String::from_utf8_lossy(&json));
            let read = read.unwrap();
            prop_assert_eq!(read.as_array().map(Vec::len), Some(4));
            let others = json!([read[0], read[2], read[3]]);
            prop_assert_eq!(others, json!(["before", null, "after"]));
        }
    }
}
