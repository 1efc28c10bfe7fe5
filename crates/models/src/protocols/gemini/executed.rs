//! Counts the calls of tools that the provider executed itself. Chunks of a stream can repeat their
//! results, so each is counted once.

use std::collections::{BTreeMap, BTreeSet};

use crate::envelope::count_calls;
use crate::fields::{self, Fields};

/// The most calls that are distinguished.
const MAX_CALLS: usize = 16_384;

/// The tools that the provider has executed for a completion.
#[derive(Debug, Default)]
pub(super) struct Executed {
    code_executions: u64,
    /// The searches and the opened pages, by tool.
    lookups: BTreeSet<(&'static str, String)>,
}

impl Executed {
    /// Takes a part of the completion.
    pub(super) fn take_part(&mut self, part: &Fields<'_>) {
        if part.has("executableCode") {
            self.code_executions += 1;
        }
    }

    /// Takes the fields around the parts.
    pub(super) fn take_candidate(&mut self, candidate: &Fields<'_>) {
        let grounding = candidate.object("groundingMetadata").unwrap_or_default();
        for query in grounding.list("webSearchQueries").unwrap_or_default() {
            self.take_lookup("google_search", fields::text(query));
        }
        let opened = candidate.object("urlContextMetadata").unwrap_or_default();
        for page in opened.list("urlMetadata").unwrap_or_default() {
            let url = fields::object(page).and_then(|page| page.filled("retrievedUrl"));
            self.take_lookup("url_context", url);
        }
    }

    fn take_lookup(&mut self, tool: &'static str, what: Option<String>) {
        if let Some(what) = what.filter(|_| self.lookups.len() < MAX_CALLS) {
            self.lookups.insert((tool, what));
        }
    }

    /// Returns how often each tool was executed.
    pub(super) fn counts(self) -> BTreeMap<String, u64> {
        let mut counts = count_calls(self.lookups.into_iter().map(|(tool, _)| tool.to_owned()));
        if self.code_executions > 0 {
            counts.insert("code_execution".to_owned(), self.code_executions);
        }
        counts
    }
}
