//! The words of errors: the table `words.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use agent::ports::ModelErrorClass;

/// The words of errors. A test reads the table.
pub(super) static WORDS: LazyLock<Words> =
    LazyLock::new(|| toml::from_str(include_str!("words.toml")).unwrap_or_default());

/// The words by their use. The table explains each list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Words {
    pub(super) codes: Vec<ClassWords>,
    pub(super) phrases: Vec<ClassWords>,
    pub(super) refusals: Vec<String>,
    pub(super) no_quota: Vec<String>,
    pub(super) code_fields: Vec<String>,
    pub(super) word_fields: Vec<String>,
    pub(super) nested_fields: Vec<String>,
    pub(super) code_ends: Vec<String>,
    pub(super) subjects: Vec<String>,
    pub(super) excesses: Vec<String>,
    pub(super) loose_subjects: Vec<String>,
    pub(super) clear_excesses: Vec<String>,
    pub(super) completion_limits: Vec<String>,
    pub(super) things: Vec<String>,
    pub(super) lengths: Vec<String>,
    pub(super) conversation_fields: Vec<String>,
    pub(super) of_time: Vec<String>,
    pub(super) unsupported: Vec<String>,
    pub(super) bad_completion_codes: Vec<String>,
    pub(super) bad_completions: Vec<String>,
    pub(super) response_format: Vec<String>,
    pub(super) schemas: Vec<String>,
    pub(super) pictures: Vec<String>,
    pub(super) documents: Vec<String>,
    pub(super) reasoning: Vec<String>,
    pub(super) parameters: Vec<String>,
}

/// The words of one class.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassWords {
    class: ModelErrorClass,
    words: Vec<String>,
}

/// Returns the first class of which a word fits.
pub(super) fn class_by(table: &[ClassWords], fits: impl Fn(&str) -> bool) -> Option<ModelErrorClass> {
    let entry = table.iter().find(|entry| entry.words.iter().any(|word| fits(word)));
    entry.map(|entry| entry.class)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let words: Words = toml::from_str(include_str!("words.toml")).unwrap();
        assert!(!words.codes.is_empty() && !words.phrases.is_empty());
    }
}
