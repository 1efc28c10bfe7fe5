//! Filters lists by metadata: `metadata={…}` and `metadata.KEY=VALUE`.

use serde_json::json;

use super::json_body::LARGE_INTEGER;
use super::parameters::{QueryParameters, invalid};
use super::problem::Problem;
use values::json::{Object, ScanFault, Value, scan_json};

/// The deepest nesting of metadata to filter by.
const MAX_METADATA_DEPTH: usize = 32;

/// Takes `metadata` and every `metadata.KEY`.
pub(super) fn take_metadata(query: &mut QueryParameters) -> Result<Object, Problem> {
    let given = query.text("metadata")?;
    let mut metadata = given.as_deref().map_or_else(|| Ok(Object::new()), parse_metadata)?;
    for (key, value) in query.prefixed("metadata.")? {
        let parameter = format!("metadata.{key}");
        if let Some((outer, inner)) = key.split_once('.') {
            let words = format!(
                "it is ambiguous whether a key has a dot: write metadata={} or metadata={}",
                json!({outer: {inner: value}}),
                json!({&key: value}),
            );
            return Err(invalid(&parameter, words));
        }
        if metadata.insert(key, Value::String(value)).is_some() {
            return Err(invalid(&parameter, "the key is also in `metadata`"));
        }
    }
    Ok(metadata)
}

/// Reads a JSON object as strictly as a body.
fn parse_metadata(text: &str) -> Result<Object, Problem> {
    let words = match scan_json(text, MAX_METADATA_DEPTH, usize::MAX) {
        Ok(()) => match serde_json::from_str(text) {
            Ok(Value::Object(object)) => return Ok(object),
            _ => "not a JSON object",
        },
        Err(ScanFault::Nul(_)) => "NUL characters can't be stored",
        Err(ScanFault::DuplicateKey(_)) => "an object has the same key twice",
        Err(ScanFault::LargeInteger(_)) => LARGE_INTEGER,
        Err(ScanFault::TooDeep(_)) => "it is nested too deeply",
        Err(ScanFault::Syntax(_) | ScanFault::TooManyValues(_)) => "not a JSON object",
    };
    Err(invalid("metadata", words))
}
