//! Counts the tokens of one response. The stream has running totals, and each may omit some of the
//! counts.

use crate::fields::{self, Fields};
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
        let iterations: Vec<_> = iterations.into_iter().filter_map(fields::object).collect();
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
