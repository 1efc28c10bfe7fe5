//! Reads usage. Missing counts are zero.

use crate::models::wire::Fields;
use crate::usage::{Cost, Usage};

/// Reads the usage of a response; `None` if there is none or it counts nothing.
pub(super) fn read_usage(response: &Fields<'_>) -> Option<Usage> {
    let usage = response.object("usage")?;
    let count = |name: &str| usage.count(name).unwrap_or_default();
    let detail = |group: &str, name: &str| {
        let details = usage.object(group);
        details.and_then(|details| details.count(name)).unwrap_or_default()
    };
    let (input_tokens, output_tokens) = (count("input_tokens"), count("output_tokens"));
    let total = usage.count("total_tokens").filter(|total| *total > 0);
    let cost: Option<f64> = usage.get("cost").and_then(|raw| serde_json::from_str(raw.get()).ok());
    let usage = Usage {
        input_tokens,
        output_tokens,
        cache_read_tokens: detail("input_tokens_details", "cached_tokens"),
        cache_write_tokens: detail("input_tokens_details", "cache_write_tokens"),
        reasoning_tokens: detail("output_tokens_details", "reasoning_tokens"),
        total_tokens: total.unwrap_or_else(|| input_tokens.saturating_add(output_tokens)),
        cost: cost.and_then(Cost::from_dollars),
        ..Usage::default()
    };
    (usage != Usage::default()).then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (r#"{"input_tokens": -1, "output_tokens": "4"}"#, None),
            ("{}", None),
            ("null", None),
            ("[1]", None),
        ] {
            let text = format!(r#"{{"usage": {usage}}}"#);
            assert_eq!(read_usage(&Fields::parse(&text).unwrap()), expected, "{usage}");
        }
        assert_eq!(read_usage(&Fields::parse("{}").unwrap()), None);
    }
}
