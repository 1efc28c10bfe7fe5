//! Counts the tokens of one response. Each chunk of a stream has a snapshot, which may omit some of
//! the counts.

use crate::wire::Fields;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thoughts_are_output_and_results_of_tools_are_input() {
        for (snapshots, expected) in [
            (
                &[r#"{"promptTokenCount": 10, "candidatesTokenCount": 4, "totalTokenCount": 14}"#][..],
                [10, 4, 0, 0, 14],
            ),
            (
                &[
                    r#"{"promptTokenCount": 57, "candidatesTokenCount": 15, "thoughtsTokenCount": 124, "totalTokenCount": 196, "cachedContentTokenCount": 32}"#,
                ],
                [57, 139, 32, 124, 196],
            ),
            (
                &[
                    r#"{"promptTokenCount": 10, "toolUsePromptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 115}"#,
                ],
                [110, 5, 0, 0, 115],
            ),
            // A later snapshot may be smaller, and may omit counts.
            (
                &[
                    r#"{"promptTokenCount": 169, "thoughtsTokenCount": 3, "totalTokenCount": 172}"#,
                    r#"{"promptTokenCount": 79, "candidatesTokenCount": 12, "totalTokenCount": 94}"#,
                ],
                [79, 15, 0, 3, 94],
            ),
            (
                &[r#"{"promptTokenCount": 2, "candidatesTokenCount": 3}"#],
                [2, 3, 0, 0, 5],
            ),
            (
                &[r#"{"promptTokenCount": null, "totalTokenCount": "many"}"#, "{}"],
                [0; 5],
            ),
            (
                &[
                    r#"{"promptTokenCount": 18446744073709551615, "thoughtsTokenCount": 1, "toolUsePromptTokenCount": 1}"#,
                ],
                [u64::MAX, 1, 0, 1, u64::MAX],
            ),
        ] {
            let mut counts = Counts::default();
            for snapshot in snapshots {
                counts.take(&Fields::parse(snapshot).unwrap());
            }
            let usage = counts.usage();
            let got = [
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_tokens,
                usage.reasoning_tokens,
                usage.total_tokens,
            ];
            assert_eq!(got, expected, "{snapshots:?}");
        }
    }
}
