//! Rewords a decoder's error messages in terms of JSON. Depends on the forms of the messages, not
//! on the values in them.

/// The separator before the expected kind.
const EXPECTED: &str = ", expected ";
/// The decoder's names of kinds of nested values, and the names in JSON.
const FOUND: &[(&str, &str)] = &[
    ("invalid type: sequence", "invalid type: array"),
    ("invalid type: map", "invalid type: object"),
];

/// The messages of the time parser, none of which names the expected format.
const NO_TIMES: &[&str] = &[
    "input is out of range",
    "input is not enough for unique date and time",
    "input contains invalid characters",
    "no possible date and time matching input",
    "premature end of input",
    "trailing input",
];

/// Rewords a decoder's message for readers who know JSON but not the Rust types.
pub fn plain_words(message: &str) -> String {
    let Some((found, expected)) = message.rsplit_once(EXPECTED) else {
        return match message {
            // The decoder's message if a value is not one of the known names.
            "expected value" => "invalid type, expected one of the known names".to_owned(),
            _ if NO_TIMES.contains(&message) => "not a time such as 2026-01-31T12:00:00Z (RFC 3339)".to_owned(),
            _ => message.to_owned(),
        };
    };
    let kind = FOUND
        .iter()
        .find_map(|(kind, plain)| Some((found.strip_suffix(kind)?, plain)));
    let (before, found) = kind.unwrap_or((found, &""));
    let expected = plain_kind(expected).unwrap_or(expected);
    format!("{before}{found}{EXPECTED}{expected}")
}

fn plain_kind(expected: &str) -> Option<&'static str> {
    Some(match expected {
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "an integer",
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "an integer of 0 or more",
        "f32" | "f64" => "a number",
        "unit" => "null",
        "a sequence" => "an array",
        "a map" => "an object",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "an integer of 1 or more",
        _ if is_of(expected, &["struct ", "struct variant ", "internally tagged enum "]) => "an object",
        _ if is_of(expected, &["tuple struct ", "tuple variant ", "tuple "]) => "an array",
        _ if is_of(expected, &["enum ", "variant of enum "]) => "one of the known names",
        _ => return None,
    })
}

fn is_of(expected: &str, kinds: &[&str]) -> bool {
    kinds.iter().any(|kind| expected.starts_with(kind))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::num::NonZeroU32;

    use serde::Deserialize;
    use serde::de::DeserializeOwned;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Inner {
        #[expect(dead_code, reason = "only read")]
        n: u8,
    }

    #[derive(Debug, Deserialize)]
    #[serde(tag = "type")]
    enum Tagged {
        #[expect(dead_code, reason = "only read")]
        Inner { inner: Inner },
    }

    fn words<T: DeserializeOwned + std::fmt::Debug>(json: &str) -> String {
        let value: serde_json::Value = serde_json::from_str(json).unwrap();
        plain_words(&serde_json::from_value::<T>(value).unwrap_err().to_string())
    }

    #[test]
    fn types_of_the_language_become_kinds_of_json() {
        for (message, plain) in [
            (words::<Inner>("3"), "invalid type: integer `3`, expected an object"),
            (words::<Tagged>("3"), "invalid type: integer `3`, expected an object"),
            (
                words::<Tagged>(r#"{"type": "Inner", "inner": 3}"#),
                "invalid type: integer `3`, expected an object",
            ),
            (words::<i64>("[]"), "invalid type: array, expected an integer"),
            (
                words::<u32>("-1"),
                "invalid value: integer `-1`, expected an integer of 0 or more",
            ),
            (
                words::<NonZeroU32>("0"),
                "invalid value: integer `0`, expected an integer of 1 or more",
            ),
            (words::<f64>("{}"), "invalid type: object, expected a number"),
            (
                words::<Vec<u8>>("true"),
                "invalid type: boolean `true`, expected an array",
            ),
            (
                words::<BTreeMap<String, u8>>("null"),
                "invalid type: null, expected an object",
            ),
            (words::<()>("1"), "invalid type: integer `1`, expected null"),
        ] {
            assert_eq!(message, plain);
        }
    }

    #[test]
    fn an_invalid_time_gets_an_example() {
        for text in [
            "",
            "tomorrow",
            "2026-01-31",
            "2026-13-31T12:00:00Z",
            "2026-01-31T12:00:00Z!",
        ] {
            let message = words::<crate::clock::Timestamp>(&format!("{text:?}"));
            assert_eq!(message, "not a time such as 2026-01-31T12:00:00Z (RFC 3339)", "{text}");
        }
    }

    #[test]
    fn other_messages_and_what_callers_wrote_stay() {
        for message in [
            "missing field `url`",
            "invalid type: string \"x, expected u8\", expected a string",
            "unknown variant `a`, expected `b` or `c`",
            "invalid value: string \"sequence\", expected a duration",
        ] {
            assert_eq!(plain_words(message), message);
        }
    }
}
