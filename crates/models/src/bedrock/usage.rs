//! Counts the tokens of one response, which arrive at its end.

use crate::wire::Fields;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_includes_what_the_cache_holds() {
        for (text, expected) in [
            (
                r#"{"inputTokens": 13, "outputTokens": 82, "totalTokens": 95}"#,
                [13, 82, 0, 0, 95],
            ),
            (
                r#"{"inputTokens": 2, "outputTokens": 5, "cacheReadInputTokens": 22, "cacheWriteInputTokens": 1300, "totalTokens": 1329}"#,
                [1324, 5, 22, 1300, 1329],
            ),
            (r#"{"inputTokens": 2, "outputTokens": null}"#, [2, 0, 0, 0, 2]),
            (
                r#"{"inputTokens": 18446744073709551615, "outputTokens": 1, "cacheReadInputTokens": 1}"#,
                [u64::MAX, 1, 1, 0, u64::MAX],
            ),
        ] {
            let usage = usage(&Fields::parse(text).unwrap());
            let got = [
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.cache_write_tokens,
                usage.total_tokens,
            ];
            assert_eq!(got, expected, "{text}");
        }
    }
}
