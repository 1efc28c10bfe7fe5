//! Removes the parts of a value that do not fit a type, so that the other parts can be used.

use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use values::json::Value;

/// The most parts of one value that are removed.
const MAX_REMOVED: usize = 32;
/// The most characters of a problem.
const MAX_PROBLEM: usize = 300;

/// Removes the parts that do not fit. Returns the problems, or else why the whole does not fit.
pub(super) fn fit<T: DeserializeOwned>(value: &mut Value) -> Result<Vec<String>, String> {
    let mut problems = Vec::new();
    loop {
        let Err(error) = serde_path_to_error::deserialize::<_, T>(&*value) else {
            return Ok(problems);
        };
        let words = error.to_string();
        let words: String = words.chars().take(MAX_PROBLEM).collect();
        if problems.len() >= MAX_REMOVED || !remove(value, error.path()) {
            // The first problem is the cause: a removed field may be required.
            return Err(problems.into_iter().next().unwrap_or(words));
        }
        problems.push(words);
    }
}

/// Removes the value at a path. Returns whether there was one below the whole.
fn remove(value: &mut Value, path: &Path) -> bool {
    let segments: Vec<_> = path.iter().collect();
    let Some((last, above)) = segments.split_last() else {
        return false;
    };
    let mut parent = value;
    for segment in above {
        let child = match segment {
            Segment::Seq { index } => parent.get_mut(*index),
            Segment::Map { key } => parent.get_mut(key.as_str()),
            Segment::Enum { .. } | Segment::Unknown => None,
        };
        let Some(child) = child else { return false };
        parent = child;
    }
    match (last, parent) {
        (Segment::Seq { index }, Value::Array(items)) if *index < items.len() => {
            items.remove(*index);
            true
        }
        (Segment::Map { key }, Value::Object(fields)) => fields.remove(key).is_some(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::Tool;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_part_that_does_not_fit_is_removed_alone() {
        let mut tool = json!({
            "name": "t", "inputSchema": {"type": "object"}, "title": 5, "_meta": [],
            "annotations": {"readOnlyHint": "yes", "idempotentHint": true},
            "icons": [{"src": "a"}, {"sizes": 3}, {"src": "b"}],
        });
        let problems = fit::<Tool>(&mut tool).unwrap();
        assert_eq!(problems.len(), 5, "{problems:?}");
        assert!(
            problems
                .iter()
                .any(|problem| problem.starts_with("annotations.readOnlyHint: ")),
            "{problems:?}"
        );
        let expected = json!({
            "name": "t", "inputSchema": {"type": "object"},
            "annotations": {"idempotentHint": true}, "icons": [{"src": "a"}, {"src": "b"}],
        });
        assert_eq!(tool, expected);
    }

    #[test]
    fn a_value_without_a_part_that_it_needs_does_not_fit() {
        for (mut tool, expected) in [
            (json!({"name": "t"}), "inputSchema"),
            (json!({"name": "t", "inputSchema": null}), "inputSchema"),
            (json!({"name": 5, "inputSchema": {}}), "name"),
            (json!("t"), "expected struct Tool"),
        ] {
            let problem = fit::<Tool>(&mut tool).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
