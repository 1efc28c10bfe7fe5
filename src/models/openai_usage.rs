//! Reads usage in the forms of OpenAI's two protocols and of compatible servers. Missing counts are
//! zero.

use super::wire::Fields;
use crate::usage::{Cost, Usage};

/// How a protocol writes usage: the names of each count, the first one before the others. A name of
/// two parts is that of a field in an object.
#[derive(Debug)]
pub(super) struct UsageNames {
    /// The objects with usage.
    usage: &'static [&'static str],
    input: &'static [&'static str],
    output: &'static [&'static str],
    reasoning: &'static [&'static str],
    cache_read: &'static [&'static str],
    cache_write: &'static [&'static str],
    /// Whether some servers count reasoning apart from the output.
    is_reasoning_apart: bool,
}

/// Usage of Chat Completions, as all its servers write it.
pub(super) const CHAT: UsageNames = UsageNames {
    usage: &["usage", "x_groq.usage"],
    input: &["prompt_tokens", "input_tokens"],
    output: &["completion_tokens", "output_tokens"],
    reasoning: &[
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
        "reasoning_tokens",
    ],
    cache_read: &[
        "prompt_tokens_details.cached_tokens",
        "input_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cached_tokens",
        "num_cached_tokens",
    ],
    cache_write: &[
        "prompt_tokens_details.cache_write_tokens",
        "cache_creation_input_tokens",
    ],
    is_reasoning_apart: true,
};

/// Usage of Responses.
pub(super) const RESPONSES: UsageNames = UsageNames {
    usage: &["usage"],
    input: &["input_tokens"],
    output: &["output_tokens"],
    reasoning: &["output_tokens_details.reasoning_tokens"],
    cache_read: &["input_tokens_details.cached_tokens"],
    cache_write: &["input_tokens_details.cache_write_tokens"],
    is_reasoning_apart: false,
};

/// Reads the usage of a chunk or a response, wherever it is; `None` if there is none or all counts
/// are zero.
pub(super) fn read_usage(chunk: &Fields<'_>, names: &UsageNames) -> Option<Usage> {
    let object = names.usage.iter().find_map(|name| match name.split_once('.') {
        Some((group, name)) => chunk.object(group)?.object(name),
        None => chunk.object(name),
    });
    let usage = counts(&object?, names);
    (usage != Usage::default()).then_some(usage)
}

fn counts(usage: &Fields<'_>, names: &UsageNames) -> Usage {
    let first = |spellings: &[&str]| {
        let mut counts = spellings.iter().filter_map(|name| match name.split_once('.') {
            Some((group, name)) => usage.object(group)?.count(name),
            None => usage.count(name),
        });
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
