//! Counts the tokens of one response, which arrive at its end.

use crate::fields::Fields;
use values::usage::Usage;

/// Reads the usage. Its input excludes cached tokens. The protocol does not count reasoning
/// separately.
pub(super) fn usage(fields: &Fields<'_>) -> Usage {
    let count = |name: &str| fields.count(name).unwrap_or_default();
    let (cache_read_tokens, cache_write_tokens) = (count("cacheReadInputTokens"), count("cacheWriteInputTokens"));
    let cached = cache_read_tokens.saturating_add(cache_write_tokens);
    let input_tokens = count("inputTokens").saturating_add(cached);
    let output_tokens = count("outputTokens");
    let sum = input_tokens.saturating_add(output_tokens);
    Usage {
        input_tokens,
        output_tokens,
        cache_read_tokens,
        cache_write_tokens,
        total_tokens: fields.count("totalTokens").unwrap_or(sum).max(sum),
        ..Usage::default()
    }
}
