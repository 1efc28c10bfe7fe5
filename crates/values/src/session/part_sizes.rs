//! Limits of the caller's own data in a session. They apply to a request, and to the session that
//! results from the request and its base session.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;

use super::bundle::BundleDraft;
use super::coverage::find_history_start;
use crate::json::{Object, Value};

/// The most key-value pairs of metadata.
const MAX_METADATA_KEYS: usize = 64;
/// The most bytes of metadata, as canonical JSON.
const MAX_METADATA_BYTES: usize = 16 << 10;
/// The most variables.
const MAX_VARIABLES: usize = 1024;
/// The most bytes of variables, as canonical JSON with their names.
const MAX_VARIABLES_BYTES: usize = 256 << 10;

/// The most resources that a run may leave.
const MAX_RESOURCES: usize = 1024;
/// The most bytes of resources, as canonical JSON with their keys.
const MAX_RESOURCES_BYTES: usize = 1 << 20;

/// Checks the number and the size of key-value pairs. The error says what is allowed.
pub fn check_metadata(metadata: &Object) -> Result<(), String> {
    if metadata.len() > MAX_METADATA_KEYS {
        return Err(format!("at most {MAX_METADATA_KEYS} keys are allowed"));
    }
    check_size(metadata, MAX_METADATA_BYTES)
}

/// Checks the number and the size of variables. The error says what is allowed.
pub fn check_variables(variables: &BTreeMap<String, Value>) -> Result<(), String> {
    if variables.len() > MAX_VARIABLES {
        return Err(format!("at most {MAX_VARIABLES} variables are allowed"));
    }
    check_size(variables, MAX_VARIABLES_BYTES)
}

/// Checks the number and the size of resources. The error says what is allowed.
pub fn check_resources(resources: &BTreeMap<String, Value>) -> Result<(), String> {
    if resources.len() > MAX_RESOURCES {
        return Err(format!("at most {MAX_RESOURCES} resources are allowed"));
    }
    check_size(resources, MAX_RESOURCES_BYTES)
}

/// The error of a session's part that is larger than allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the session's {part} has more than {max_bytes} bytes of JSON, which is the most that is allowed")]
pub struct PartTooLarge {
    part: &'static str,
    max_bytes: usize,
}

/// Checks the size of the history that a run needs, of the environment and of the context, each as
/// JSON. An environment or a context that equals the parent's was checked with the parent.
pub fn check_parts(draft: &BundleDraft, max_bytes: usize) -> Result<(), PartTooLarge> {
    check_history(needed_bytes(draft), max_bytes)?;
    let parent = draft.parent.as_deref();
    let too_large = |part| move |_| PartTooLarge { part, max_bytes };
    if parent.is_none_or(|parent| parent.environment != draft.environment) {
        check_size(&draft.environment, max_bytes).map_err(too_large("environment"))?;
    }
    if parent.is_none_or(|parent| *parent.context != draft.context.stored) {
        check_size(&draft.context.stored, max_bytes).map_err(too_large("context"))?;
    }
    Ok(())
}

/// Checks the size of the messages that a run of the session needs.
pub fn check_history(bytes: usize, max_bytes: usize) -> Result<(), PartTooLarge> {
    let part = "history";
    (bytes <= max_bytes)
        .then_some(())
        .ok_or(PartTooLarge { part, max_bytes })
}

/// Returns the bytes of the messages that a run needs: those after the newest summary's range.
fn needed_bytes(draft: &BundleDraft) -> usize {
    let inherited_start = draft.parent.as_ref().map_or(0, |parent| parent.head.history_start);
    let start = find_history_start(&draft.history, draft.inherited(), inherited_start);
    // The store rejects an invalid summary, so no error is needed here.
    let start = start.unwrap_or(inherited_start);
    draft
        .history
        .held_from(usize::try_from(start).unwrap_or(usize::MAX))
        .bytes()
}

/// Checks the size of values as JSON. Both kinds of maps are sorted, so their JSON is canonical.
fn check_size<T: Serialize>(values: &T, max_bytes: usize) -> Result<(), String> {
    serde_json::to_writer(Allowance(max_bytes), values)
        .map_err(|_| format!("at most {max_bytes} bytes of JSON are allowed"))
}

/// Fails once more is written than is left, so that no large value is serialized to its end.
struct Allowance(usize);

impl io::Write for Allowance {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map<T: FromIterator<(String, Value)>>(count: usize, value: &Value) -> T {
        (0..count).map(|key| (format!("{key:04}"), value.clone())).collect()
    }

    #[test]
    fn metadata_is_limited_in_keys_and_in_canonical_bytes() {
        assert_eq!(check_metadata(&Object::new()), Ok(()));
        assert_eq!(check_metadata(&map(64, &json!([1, {"a": null}]))), Ok(()));
        assert_eq!(
            check_metadata(&map(65, &json!(0))),
            Err("at most 64 keys are allowed".to_owned())
        );
        // `{"0000":"…"}`
        let text = |bytes: usize| json!("x".repeat(bytes - 11));
        assert_eq!(check_metadata(&map(1, &text(16_384))), Ok(()));
        assert_eq!(
            check_metadata(&map(1, &text(16_385))),
            Err("at most 16384 bytes of JSON are allowed".to_owned())
        );
    }

    #[test]
    fn variables_are_limited_in_number_and_in_canonical_bytes() {
        assert_eq!(check_variables(&map(1024, &json!({"a": 0}))), Ok(()));
        assert_eq!(
            check_variables(&map(1025, &json!(0))),
            Err("at most 1024 variables are allowed".to_owned())
        );
        let text = |bytes: usize| json!("x".repeat(bytes - 11));
        assert_eq!(check_variables(&map(1, &text(262_144))), Ok(()));
        assert_eq!(
            check_variables(&map(1, &text(262_145))),
            Err("at most 262144 bytes of JSON are allowed".to_owned())
        );
    }
}
