//! Ranks tools by the words of a query. The same query and tools give the same order.
//!
//! A word of the query counts more in a name than in a description, and more there than among the
//! names of parameters. It counts more if few tools have it. A part of a word counts half.

use std::collections::BTreeSet;

use agent::ports::ToolSpec;
use values::json::Value;

const IN_NAME: u64 = 8;
const IN_DESCRIPTION: u64 = 4;
const IN_PARAMETERS: u64 = 2;
/// The shortest word that matches the beginning of a longer one.
const MIN_PREFIX: usize = 3;
/// Words of a query that say nothing about a tool.
const COMMON: [&str; 12] = [
    "a", "an", "and", "for", "from", "in", "of", "on", "or", "the", "to", "with",
];
/// The most bytes of a description that are searched.
const MAX_DESCRIPTION: usize = 16 << 10;

/// The words of a tool.
struct Words {
    name: BTreeSet<String>,
    description: BTreeSet<String>,
    parameters: BTreeSet<String>,
}

/// Returns the tools that match a word of the query, the best one first. Equally good ones have
/// their order among the tools. A tool whose name is the query comes before all others.
pub(super) fn ranked<'a>(query: &str, tools: &'a [ToolSpec]) -> Vec<&'a ToolSpec> {
    let words: Vec<_> = tools.iter().map(Words::of).collect();
    let mut scores = vec![0; tools.len()];
    let query_words = words_of(query).into_iter();
    for word in query_words.filter(|word| !COMMON.contains(&word.as_str())) {
        let word_scores: Vec<_> = words.iter().map(|tool| tool.score(&word)).collect();
        let having = word_scores.iter().filter(|score| **score > 0).count();
        // 1 for a word that all tools have, and 1 more each time that half as many tools have it.
        let rarity = 1 + u64::from((tools.len() / having.max(1)).max(1).ilog2());
        for (score, word_score) in scores.iter_mut().zip(word_scores) {
            *score += word_score * rarity;
        }
    }
    let is_named = |tool: &ToolSpec| tool.name.eq_ignore_ascii_case(query.trim());
    let mut ranked: Vec<_> = tools.iter().zip(scores).filter(|(_, score)| *score > 0).collect();
    // A stable sort, so that equal ones keep their order.
    ranked.sort_by_key(|(tool, score)| (!is_named(tool), std::cmp::Reverse(*score)));
    ranked.into_iter().map(|(tool, _)| tool).collect()
}

impl Words {
    fn of(tool: &ToolSpec) -> Self {
        let end = tool.description.floor_char_boundary(MAX_DESCRIPTION);
        let parameters = tool.parameters.get("properties").and_then(Value::as_object);
        let names = parameters.into_iter().flat_map(|properties| properties.keys());
        Self {
            name: words_of(&tool.name),
            description: words_of(&tool.description[..end]),
            parameters: names.flat_map(|name| words_of(name)).collect(),
        }
    }

    fn score(&self, word: &str) -> u64 {
        matching(&self.name, word) * IN_NAME
            + matching(&self.description, word) * IN_DESCRIPTION
            + matching(&self.parameters, word) * IN_PARAMETERS
    }
}

/// Returns 2 if the word is among the words, 1 if it begins one or one begins it, else 0.
fn matching(words: &BTreeSet<String>, word: &str) -> u64 {
    if words.contains(word) {
        return 2;
    }
    let begins = |longer: &str, shorter: &str| shorter.chars().count() >= MIN_PREFIX && longer.starts_with(shorter);
    u64::from(words.iter().any(|other| begins(other, word) || begins(word, other)))
}

/// Splits a text into words of lower case, also where a capital follows a small letter.
fn words_of(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let mut was_small = false;
    for c in text.chars() {
        let splits = !c.is_alphanumeric() || (was_small && c.is_uppercase());
        if splits && !word.is_empty() {
            words.insert(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_small = c.is_lowercase();
    }
    if !word.is_empty() {
        words.insert(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, description: &str, parameters: &[&str]) -> ToolSpec {
        let properties = parameters.iter().map(|name| ((*name).to_owned(), json!({})));
        let properties: serde_json::Map<_, _> = properties.collect();
        ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters: json!({"type": "object", "properties": properties}),
            ..ToolSpec::default()
        }
    }

    #[test]
    fn names_count_more_than_descriptions_and_rare_words_more_than_common_ones() {
        let tools = [
            tool(
                "github_list_issues",
                "Lists the issues of a repository.",
                &["repo", "state"],
            ),
            tool("github_create_issue", "Creates an issue.", &["repo", "title"]),
            tool("github_createRelease", "Publishes a version.", &["repo", "tag_name"]),
            tool(
                "jira_comment",
                "Comments on an issue; creates none.",
                &["issue", "body"],
            ),
            tool("weather", "Tells how warm it is.", &["city"]),
        ];
        for case in [
            "create issue => github_create_issue github_createRelease jira_comment github_list_issues",
            "Create a release => github_createRelease github_create_issue jira_comment",
            "WEATHER => weather",
            "title => github_create_issue",
            "tag => github_createRelease",
            "github => github_list_issues github_create_issue github_createRelease",
            "github_create_issue => github_create_issue github_createRelease github_list_issues jira_comment",
            "Jira_Comment => jira_comment",
            "moon => ",
            "?! => ",
            "of a => ",
        ] {
            let (query, expected) = case.split_once(" => ").unwrap();
            let found: Vec<_> = ranked(query, &tools)
                .into_iter()
                .map(|tool| tool.name.as_str())
                .collect();
            assert_eq!(found.join(" "), expected, "{query}");
        }
    }

    #[test]
    fn words_are_split_at_signs_and_capitals() {
        for (text, expected) in [
            ("getUserById", &["by", "get", "id", "user"][..]),
            ("list-HTTP_tools 2", &["2", "http", "list", "tools"]),
            ("Größe löschen", &["größe", "löschen"]),
            ("", &[]),
        ] {
            assert_eq!(words_of(text).into_iter().collect::<Vec<_>>(), expected, "{text}");
        }
    }
}
