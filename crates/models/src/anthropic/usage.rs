//! Counts the tokens of one response. The stream has running totals, and each may omit some of the
//! counts.

use crate::wire::{self, Fields};
use values::usage::Usage;

/// The counts of one completion.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// The totals at the top of the response. They exclude the tokens of a compaction.
    totals: Tokens,
    /// The sum of the provider's model calls for this completion, if it lists them. The provider
    /// bills this sum.
    iterations: Option<Tokens>,
}

/// Counts in the form of the protocol.
#[derive(Debug, Default)]
struct Tokens {
    /// Input tokens, without those read from or written to the cache.
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
    /// The part of the output that is thinking.
    thinking: u64,
}

impl Counts {
    /// Takes a snapshot.
    pub(super) fn take(&mut self, usage: &Fields<'_>) {
        self.totals.replace(usage);
        let iterations = usage.list("iterations").unwrap_or_default();
        let iterations: Vec<_> = iterations.into_iter().filter_map(wire::object).collect();
        if !iterations.is_empty() {
            let mut sum = Tokens::default();
            for iteration in &iterations {
                sum.add(iteration);
            }
            self.iterations = Some(sum);
        }
    }

    /// Returns the usage. Its input includes cached tokens.
    pub(super) fn usage(&self) -> Usage {
        let tokens = self.iterations.as_ref().unwrap_or(&self.totals);
        let cached = tokens.cache_read.saturating_add(tokens.cache_write);
        let input_tokens = tokens.input.saturating_add(cached);
        Usage {
            input_tokens,
            output_tokens: tokens.output,
            cache_read_tokens: tokens.cache_read,
            cache_write_tokens: tokens.cache_write,
            // Thinking is reported for the whole completion.
            reasoning_tokens: tokens.thinking.max(self.totals.thinking),
            total_tokens: input_tokens.saturating_add(tokens.output),
            ..Usage::default()
        }
    }
}

impl Tokens {
    /// Takes totals. They only grow, so a missing count and a zero are ignored.
    fn replace(&mut self, usage: &Fields<'_>) {
        for (known, reported) in self.reported(usage) {
            *known = reported.filter(|reported| *reported > 0).unwrap_or(*known);
        }
    }

    fn add(&mut self, usage: &Fields<'_>) {
        for (known, reported) in self.reported(usage) {
            *known = known.saturating_add(reported.unwrap_or_default());
        }
    }

    /// Pairs each count with the reported one.
    fn reported(&mut self, usage: &Fields<'_>) -> [(&mut u64, Option<u64>); 5] {
        let by_lifetime = usage.object("cache_creation").map(|writes| {
            let count = |name: &str| writes.count(name).unwrap_or_default();
            count("ephemeral_5m_input_tokens").saturating_add(count("ephemeral_1h_input_tokens"))
        });
        let details = usage.object("output_tokens_details");
        [
            (&mut self.input, usage.count("input_tokens")),
            (&mut self.output, usage.count("output_tokens")),
            (&mut self.cache_read, usage.count("cache_read_input_tokens")),
            (
                &mut self.cache_write,
                usage.count("cache_creation_input_tokens").or(by_lifetime),
            ),
            (
                &mut self.thinking,
                details.and_then(|details| details.count("thinking_tokens")),
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(snapshots: &[&str]) -> [u64; 6] {
        let mut counts = Counts::default();
        for snapshot in snapshots {
            counts.take(&Fields::parse(snapshot).unwrap());
        }
        let usage = counts.usage();
        [
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
            usage.total_tokens,
        ]
    }

    #[test]
    fn input_includes_what_the_cache_holds() {
        for (snapshots, expected) in [
            (
                &[r#"{"input_tokens": 10, "output_tokens": 4}"#][..],
                [10, 4, 0, 0, 0, 14],
            ),
            (
                &[
                    r#"{"input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 1000}"#,
                ],
                [1110, 4, 100, 1000, 0, 1114],
            ),
            (
                &[
                    r#"{"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 3}}"#,
                ],
                [6, 0, 0, 5, 0, 6],
            ),
            (
                &[
                    r#"{"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5}"#,
                    r#"{"output_tokens": 9}"#,
                ],
                [15, 9, 5, 0, 0, 24],
            ),
            (
                &[
                    r#"{"input_tokens": 10, "output_tokens": 1}"#,
                    r#"{"input_tokens": 70, "output_tokens": 0}"#,
                ],
                [70, 1, 0, 0, 0, 71],
            ),
            (&[r#"{"input_tokens": null, "output_tokens": "many"}"#, "{}"], [0; 6]),
            (
                &[r#"{"input_tokens": 18446744073709551615, "output_tokens": 1, "cache_read_input_tokens": 1}"#],
                [u64::MAX, 1, 1, 0, 0, u64::MAX],
            ),
            (
                &[r#"{"input_tokens": 10, "output_tokens": 4, "output_tokens_details": {"thinking_tokens": 3}}"#],
                [10, 4, 0, 0, 3, 14],
            ),
        ] {
            assert_eq!(counted(snapshots), expected, "{snapshots:?}");
        }
    }

    #[test]
    fn what_is_listed_by_iteration_is_the_sum_of_the_list() {
        let compaction = r#"{"type": "compaction", "input_tokens": 100, "output_tokens": 131, "cache_creation_input_tokens": 55096}"#;
        let message =
            r#"{"type": "message", "input_tokens": 229, "output_tokens": 5, "cache_creation_input_tokens": 0}"#;
        let end = format!(
            r#"{{"input_tokens": 229, "output_tokens": 5, "cache_creation_input_tokens": 0,
                "output_tokens_details": {{"thinking_tokens": 2}}, "iterations": [{compaction}, {message}]}}"#
        );
        let all = [55_425, 136, 0, 55_096, 2, 55_561];
        assert_eq!(counted(&[&end]), all);
        let start = r#"{"input_tokens": 100, "output_tokens": 1, "cache_creation_input_tokens": 55096}"#;
        assert_eq!(
            counted(&[start, &end]),
            all,
            "a zero at the end says nothing of an earlier iteration"
        );
        let begun = format!(r#"{{"input_tokens": 100, "iterations": [{compaction}]}}"#);
        assert_eq!(counted(&[&begun, &end]), all, "a later list replaces an earlier one");
        assert_eq!(counted(&[&end, r#"{"output_tokens": 5}"#]), all);
        for list in ["[]", "null", "3", "[1, null]"] {
            let usage = format!(r#"{{"input_tokens": 1, "output_tokens": 2, "iterations": {list}}}"#);
            assert_eq!(counted(&[&usage]), [1, 2, 0, 0, 0, 3], "{list}");
        }
    }
}
