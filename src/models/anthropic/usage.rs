//! Counts the tokens of one answer. The stream tells running totals, each perhaps of some of the counts only.

use crate::models::wire::Fields;
use crate::usage::Usage;

/// The counts so far, as the protocol has them.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Without what was read from or written to the cache.
    input: u64,
    output: u64,
    cache_read: u64,
    cache_write: u64,
}

impl Counts {
    /// Takes a snapshot. Totals only grow, so a missing count and a zero say nothing new.
    pub(super) fn take(&mut self, usage: &Fields<'_>) {
        let by_lifetime = usage.object("cache_creation").map(|writes| {
            let count = |name: &str| writes.count(name).unwrap_or_default();
            count("ephemeral_5m_input_tokens").saturating_add(count("ephemeral_1h_input_tokens"))
        });
        let cache_write = usage.count("cache_creation_input_tokens").or(by_lifetime);
        for (known, told) in [
            (&mut self.input, usage.count("input_tokens")),
            (&mut self.output, usage.count("output_tokens")),
            (&mut self.cache_read, usage.count("cache_read_input_tokens")),
            (&mut self.cache_write, cache_write),
        ] {
            *known = told.filter(|told| *told > 0).unwrap_or(*known);
        }
    }

    /// Returns the usage, whose input includes what the cache holds. The protocol does not count thinking apart.
    pub(super) fn usage(&self) -> Usage {
        let cached = self.cache_read.saturating_add(self.cache_write);
        let input_tokens = self.input.saturating_add(cached);
        Usage {
            input_tokens,
            output_tokens: self.output,
            cache_read_tokens: self.cache_read,
            cache_write_tokens: self.cache_write,
            total_tokens: input_tokens.saturating_add(self.output),
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(snapshots: &[&str]) -> [u64; 5] {
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
            usage.total_tokens,
        ]
    }

    #[test]
    fn input_includes_what_the_cache_holds() {
        for (snapshots, expected) in [
            (&[r#"{"input_tokens": 10, "output_tokens": 4}"#][..], [10, 4, 0, 0, 14]),
            (
                &[
                    r#"{"input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 1000}"#,
                ],
                [1110, 4, 100, 1000, 1114],
            ),
            (
                &[
                    r#"{"input_tokens": 1, "cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 3}}"#,
                ],
                [6, 0, 0, 5, 6],
            ),
            (
                &[
                    r#"{"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5}"#,
                    r#"{"output_tokens": 9}"#,
                ],
                [15, 9, 5, 0, 24],
            ),
            (
                &[
                    r#"{"input_tokens": 10, "output_tokens": 1}"#,
                    r#"{"input_tokens": 70, "output_tokens": 0}"#,
                ],
                [70, 1, 0, 0, 71],
            ),
            (&[r#"{"input_tokens": null, "output_tokens": "many"}"#, "{}"], [0; 5]),
            (
                &[r#"{"input_tokens": 18446744073709551615, "output_tokens": 1, "cache_read_input_tokens": 1}"#],
                [u64::MAX, 1, 1, 0, u64::MAX],
            ),
        ] {
            assert_eq!(counted(snapshots), expected, "{snapshots:?}");
        }
    }
}
