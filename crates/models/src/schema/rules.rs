//! The keywords of schemas that each protocol accepts: the table `rules.toml`.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::settings::ProviderKind;

/// The table. A test reads it.
pub(super) static TABLE: LazyLock<Table> =
    LazyLock::new(|| toml::from_str(include_str!("rules.toml")).unwrap_or_default());

/// The rules of all protocols, and the keywords of schemas.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    rules: Vec<Rules>,
    /// The rules of a protocol that has none.
    #[serde(skip)]
    any: Rules,
    pub(super) silent: Vec<String>,
    pub(super) hard_patterns: Vec<String>,
}

/// The rules of one protocol.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Schemas {
    /// The rules for tools.
    pub(super) tools: &'static Rules,
    /// The rules for a response format that the provider enforces.
    pub(super) format: &'static Rules,
}

/// The handling of a response format that can't be expressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Otherwise {
    /// The format is sent in its reduced form.
    #[default]
    Sent,
    /// The format is sent without strictness, under the rules for tools.
    NotStrict,
    /// The prompt describes it.
    Prompt,
}

/// The accepted parts of one schema.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Rules {
    /// The protocols for whose tools these rules are.
    tools: Vec<ProviderKind>,
    /// The protocols for whose response formats these rules are.
    formats: Vec<ProviderKind>,
    /// The handling of a response format that these rules can't express.
    pub(super) otherwise: Otherwise,
    /// The keywords that are accepted; all if empty.
    pub(super) accepted: Vec<String>,
    /// The keywords that are not accepted.
    pub(super) refused: Vec<String>,
    /// The keywords of the root that are accepted; all if empty.
    pub(super) at_root: Vec<String>,
    /// The accepted values of `format`; all if empty.
    pub(super) format_values: Vec<String>,
    /// The largest accepted `minItems`.
    pub(super) min_items: Option<u64>,
    /// References are replaced by their targets.
    pub(super) inlines: bool,
    /// Objects must have `"additionalProperties": false`.
    pub(super) closed: bool,
    /// All members must be required, and all schemas must have a type.
    pub(super) complete: bool,
    /// The most characters of the description of a tool.
    pub(super) description: Option<usize>,
}

impl Schemas {
    /// Returns the rules of a protocol.
    pub(crate) fn of(kind: ProviderKind) -> Self {
        let rules = |is_for: fn(&Rules) -> &[ProviderKind]| {
            let mut all = TABLE.rules.iter();
            all.find(|rules| is_for(rules).contains(&kind)).unwrap_or(&TABLE.any)
        };
        Self {
            tools: rules(|rules| &rules.tools),
            format: rules(|rules| &rules.formats),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_read() {
        let table: Table = toml::from_str(include_str!("rules.toml")).unwrap();
        assert!(!table.rules.is_empty() && !table.silent.is_empty() && !table.hard_patterns.is_empty());
    }

    #[test]
    fn each_protocol_over_http_has_rules_for_tools_and_for_formats() {
        for kind in ProviderKind::OVER_HTTP {
            let tools = TABLE.rules.iter().filter(|rules| rules.tools.contains(&kind));
            let formats = TABLE.rules.iter().filter(|rules| rules.formats.contains(&kind));
            assert_eq!((tools.count(), formats.count()), (1, 1), "{kind:?}");
        }
    }
}
