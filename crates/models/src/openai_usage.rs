//! Reads usage in the forms of OpenAI's two protocols and of compatible servers. Missing counts are
//! zero.

use self::Name::{Inner, Own};
use super::wire::Fields;
use values::usage::{Cost, Usage};

/// How a protocol writes usage: the names of each count, the first one before the others.
#[derive(Debug)]
pub(super) struct UsageNames {
    /// The objects with usage.
    usage: &'static [Name],
    input: &'static [Name],
    output: &'static [Name],
    reasoning: &'static [Name],
    cache_read: &'static [Name],
    cache_write: &'static [Name],
    /// Whether some servers count reasoning apart from the output.
    is_reasoning_apart: bool,
}

/// The name of a field.
#[derive(Debug)]
enum Name {
    Own(&'static str),
    /// The name of an object, and that of a field in it.
    Inner(&'static str, &'static str),
}

/// Usage of Chat Completions, as all its servers write it.
pub(super) const CHAT: UsageNames = UsageNames {
    usage: &[Own("usage"), Inner("x_groq", "usage")],
    input: &[Own("prompt_tokens"), Own("input_tokens")],
    output: &[Own("completion_tokens"), Own("output_tokens")],
    reasoning: &[
        Inner("completion_tokens_details", "reasoning_tokens"),
        Inner("output_tokens_details", "reasoning_tokens"),
        Own("reasoning_tokens"),
    ],
    cache_read: &[
        Inner("prompt_tokens_details", "cached_tokens"),
        Inner("input_tokens_details", "cached_tokens"),
        Own("prompt_cache_hit_tokens"),
        Own("cached_tokens"),
        Own("num_cached_tokens"),
    ],
    cache_write: &[
        Inner("prompt_tokens_details", "cache_write_tokens"),
        Own("cache_creation_input_tokens"),
    ],
    is_reasoning_apart: true,
};

/// Usage of Responses.
pub(super) const RESPONSES: UsageNames = UsageNames {
    usage: &[Own("usage")],
    input: &[Own("input_tokens")],
    output: &[Own("output_tokens")],
    reasoning: &[Inner("output_tokens_details", "reasoning_tokens")],
    cache_read: &[Inner("input_tokens_details", "cached_tokens")],
    cache_write: &[Inner("input_tokens_details", "cache_write_tokens")],
    is_reasoning_apart: false,
};

impl Name {
    fn of<'a, T>(&self, fields: &Fields<'a>, read: fn(&Fields<'a>, &str) -> Option<T>) -> Option<T> {
        match self {
            Own(name) => read(fields, name),
            Inner(object, name) => read(&fields.object(object)?, name),
        }
    }
}

/// Reads the usage of a chunk or a response, wherever it is; `None` if there is none or all counts
/// are zero.
pub(super) fn read_usage(chunk: &Fields<'_>, names: &UsageNames) -> Option<Usage> {
    let object = names.usage.iter().find_map(|name| name.of(chunk, Fields::object));
    let usage = counts(&object?, names);
    (usage != Usage::default()).then_some(usage)
}

fn counts(usage: &Fields<'_>, names: &UsageNames) -> Usage {
    let first = |spellings: &[Name]| {
        let mut counts = spellings.iter().filter_map(|name| name.of(usage, Fields::count));
        // A zero is what servers write that count the same elsewhere.
        counts.find(|count| *count > 0).unwrap_or_default()
    };
    let input_tokens = first(names.input);
    let answer_tokens = first(names.output);
    let reasoning_tokens = first(names.reasoning);
    let total = usage.count("total_tokens").filter(|total| *total > 0);
    let cost: Option<f64> = usage.get("cost").and_then(|raw| serde_json::from_str(raw.get()).ok());
    // Most servers count reasoning as a part of the output. If the total has both, it is separate
    // and also billed.
    let with_reasoning = answer_tokens.saturating_add(reasoning_tokens);
    let output_tokens = if names.is_reasoning_apart && total == Some(input_tokens.saturating_add(with_reasoning)) {
        with_reasoning
    } else {
        answer_tokens
    };
    Usage {
        input_tokens,
        output_tokens,
        cache_read_tokens: first(names.cache_read),
        cache_write_tokens: first(names.cache_write),
        reasoning_tokens,
        total_tokens: total.unwrap_or_else(|| input_tokens.saturating_add(output_tokens)),
        cost: cost.and_then(Cost::from_dollars),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<Usage> {
        read_usage(&Fields::parse(text).unwrap(), &CHAT)
    }

    #[test]
    fn every_known_accent_is_understood() {
        let plain = Usage {
            input_tokens: 10,
            output_tokens: 4,
            total_tokens: 14,
            ..Usage::default()
        };
        let cached = Usage {
            cache_read_tokens: 6,
            ..plain
        };
        for (text, expected) in [
            (r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4}}"#, plain),
            (
                r#"{"usage": null, "x_groq": {"usage": {"prompt_tokens": 10, "completion_tokens": 4.0}}}"#,
                plain,
            ),
            (
                r#"{"usage": {"input_tokens": 10, "output_tokens": 4, "cost": "?"}}"#,
                plain,
            ),
            (
                r#"{"usage": {"input_tokens": 10, "output_tokens": 4, "input_tokens_details": {"cache_write_tokens": 2}}}"#,
                plain,
            ),
            (
                r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "prompt_cache_hit_tokens": 6}}"#,
                cached,
            ),
            (
                r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "cached_tokens": 6}}"#,
                cached,
            ),
            (
                r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "num_cached_tokens": 6}}"#,
                cached,
            ),
            (
                r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "num_cached_tokens": 6, "cached_tokens": 0,
                   "prompt_tokens_details": {"cached_tokens": 0}}}"#,
                cached,
            ),
            (
                r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 6}}}"#,
                cached,
            ),
            (
                r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 20, "cost": 0.5,
                   "completion_tokens_details": {"reasoning_tokens": 3}, "prompt_tokens_details": {"cache_write_tokens": 2}}}"#,
                Usage {
                    total_tokens: 20,
                    reasoning_tokens: 3,
                    cache_write_tokens: 2,
                    cost: Cost::from_dollars(0.5),
                    ..plain
                },
            ),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn reasoning_beside_an_answer_counts_as_output() {
        let reasoned = Usage {
            input_tokens: 10,
            output_tokens: 4,
            reasoning_tokens: 3,
            total_tokens: 14,
            ..Usage::default()
        };
        for (text, expected) in [
            (
                r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 14,
                   "completion_tokens_details": {"reasoning_tokens": 3}}}"#,
                reasoned,
            ),
            // Reasoning is separate from the output and billed with it.
            (
                r#"{"usage": {"prompt_tokens": 10, "completion_tokens": 4, "total_tokens": 17,
                   "completion_tokens_details": {"reasoning_tokens": 3}}}"#,
                Usage {
                    output_tokens: 7,
                    total_tokens: 17,
                    ..reasoned
                },
            ),
        ] {
            assert_eq!(read(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_response_without_usage_has_none() {
        for text in [
            r#"{"usage": {}}"#,
            r#"{"usage": null}"#,
            r#"{"usage": [1]}"#,
            "{}",
            r#"{"usage": {"prompt_tokens": -3}}"#,
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn counts_are_read_and_missing_ones_are_zero() {
        let plain = Usage {
            input_tokens: 10,
            output_tokens: 4,
            total_tokens: 14,
            ..Usage::default()
        };
        for (usage, expected) in [
            (r#"{"input_tokens": 10, "output_tokens": 4}"#, Some(plain)),
            (
                r#"{"input_tokens": 10, "output_tokens": 4, "total_tokens": null, "input_tokens_details": null}"#,
                Some(plain),
            ),
            (
                r#"{"input_tokens": 10, "output_tokens": 4, "total_tokens": 20, "cost": 0.5,
                   "input_tokens_details": {"cached_tokens": 6, "cache_write_tokens": 2},
                   "output_tokens_details": {"reasoning_tokens": 3}}"#,
                Some(Usage {
                    total_tokens: 20,
                    cache_read_tokens: 6,
                    cache_write_tokens: 2,
                    reasoning_tokens: 3,
                    cost: Cost::from_dollars(0.5),
                    ..plain
                }),
            ),
            (
                r#"{"input_tokens": 18446744073709551615, "output_tokens": 4}"#,
                Some(Usage {
                    input_tokens: u64::MAX,
                    total_tokens: u64::MAX,
                    ..plain
                }),
            ),
            // Reasoning is a part of the output, even if the total has it twice.
            (
                r#"{"input_tokens": 10, "output_tokens": 4, "total_tokens": 17,
                   "output_tokens_details": {"reasoning_tokens": 3}}"#,
                Some(Usage {
                    total_tokens: 17,
                    reasoning_tokens: 3,
                    ..plain
                }),
            ),
            (r#"{"prompt_tokens": 10, "completion_tokens": 4}"#, None),
            (r#"{"input_tokens": -1, "output_tokens": "4"}"#, None),
            ("{}", None),
            ("null", None),
            ("[1]", None),
        ] {
            let text = format!(r#"{{"usage": {usage}}}"#);
            assert_eq!(
                read_usage(&Fields::parse(&text).unwrap(), &RESPONSES),
                expected,
                "{usage}"
            );
        }
        assert_eq!(read_usage(&Fields::parse("{}").unwrap(), &RESPONSES), None);
    }
}
