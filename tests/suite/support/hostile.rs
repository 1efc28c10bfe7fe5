//! Hostile values of callers. They would cost a process its stack, its memory or its time if code
//! processed them before they were measured.

use serde_json::{Value, json};

/// A prompt that nests so deeply; a stack takes few thousand levels.
pub(crate) fn endless_prompt(levels: usize) -> String {
    format!("{{{{ {}1 }}}}", "-".repeat(levels))
}

/// Schemas of responses, each with a word of why it is refused.
pub(crate) fn endless_schemas() -> [(Value, &'static str); 5] {
    let reference = |number: usize| json!({"$ref": format!("#/$defs/d{number}")});
    // Each level has twice the checks of the one below.
    let doubling = |list: &str, levels: usize| {
        let level = |number: usize| {
            (
                format!("d{number}"),
                json!({list: [reference(number + 1), reference(number + 1)]}),
            )
        };
        let mut levels: serde_json::Map<_, _> = (0..levels).map(level).collect();
        levels.insert(format!("d{}", levels.len()), json!({"type": "string"}));
        json!({"type": "object", "properties": {"a": reference(0)}, "$defs": levels})
    };
    let chain: serde_json::Map<_, _> = (0..1_000)
        .map(|number| (format!("d{number}"), reference(number + 1)))
        .chain([("d1000".to_owned(), json!({"type": "string"}))])
        .collect();
    let chain = json!({"type": "object", "properties": {"a": reference(0)}, "$defs": chain});
    let pattern = |number: usize| (format!("p{number}"), json!({"pattern": format!("^(a|b)+{number}$")}));
    let patterns: serde_json::Map<_, _> = (0..1_700).map(pattern).collect();
    let patterns = json!({"type": "object", "properties": patterns});
    [
        (doubling("anyOf", 22), "in a row"),
        (doubling("allOf", 22), "in a row"),
        (doubling("anyOf", 12), "checks of one value"),
        (chain, "in a row"),
        (patterns, "pattern"),
    ]
}

/// Files of agents whose responses have these schemas.
pub(crate) fn endless_agents(model: &str) -> [(String, &'static str); 5] {
    endless_schemas().map(|(schema, words)| {
        let format = json!({"type": "json_schema", "name": "a", "schema": schema});
        let agent = json!({"model": model, "response_format": format});
        (toml::to_string(&agent).unwrap(), words)
    })
}
