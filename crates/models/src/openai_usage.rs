//! Reads usage in the forms of OpenAI's two protocols and of compatible servers. Missing counts are
//! zero.

use self::Name::{Inner, Own};
use super::fields::Fields;
use values::usage::{Cost, Usage};

/// The names of each count in the usage of a protocol, the first one before the others.
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
        // Servers that count these tokens elsewhere write a zero.
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
