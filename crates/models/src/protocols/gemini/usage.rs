//! Counts the tokens of one response. Each chunk of a stream has a snapshot, which may omit some of
//! the counts.

use crate::fields::Fields;
use values::usage::Usage;

/// The counts so far, in the form of the protocol.
#[derive(Debug, Default)]
pub(super) struct Counts {
    /// Input tokens, including those read from the cache.
    prompt: u64,
    /// Input tokens of results of the provider's own tools, not included in `prompt`.
    tool_prompt: u64,
    cached: u64,
    /// Output tokens without thoughts.
    candidates: u64,
    thoughts: u64,
    total: u64,
}

impl Counts {
    /// Takes a snapshot. A missing count and a zero are ignored.
    pub(super) fn take(&mut self, usage: &Fields<'_>) {
        for (known, name) in [
            (&mut self.prompt, "promptTokenCount"),
            (&mut self.tool_prompt, "toolUsePromptTokenCount"),
            (&mut self.cached, "cachedContentTokenCount"),
            (&mut self.candidates, "candidatesTokenCount"),
            (&mut self.thoughts, "thoughtsTokenCount"),
            (&mut self.total, "totalTokenCount"),
        ] {
            *known = usage.count(name).filter(|count| *count > 0).unwrap_or(*known);
        }
    }

    /// Returns the usage. The protocol counts thoughts separately from the output.
    pub(super) fn usage(&self) -> Usage {
        let input_tokens = self.prompt.saturating_add(self.tool_prompt);
        let output_tokens = self.candidates.saturating_add(self.thoughts);
        let sum = input_tokens.saturating_add(output_tokens);
        Usage {
            input_tokens,
            output_tokens,
            cache_read_tokens: self.cached.min(input_tokens),
            reasoning_tokens: self.thoughts,
            total_tokens: if self.total == 0 { sum } else { self.total },
            ..Usage::default()
        }
    }
}
