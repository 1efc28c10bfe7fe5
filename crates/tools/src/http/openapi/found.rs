//! Finds the operations of a document.

use super::references::Document;
use net::outgoing::HttpMethod;
use values::json::{Object, Value};

/// An operation, where the document has it.
pub(super) struct Found<'d> {
    pub(super) path: &'d str,
    pub(super) method: HttpMethod,
    pub(super) item: &'d Object,
    pub(super) operation: &'d Object,
}

/// Lists the operations of a document.
pub(super) fn all<'d>(document: &Document<'d>) -> Vec<Found<'d>> {
    let paths = document.root().get("paths").and_then(Value::as_object);
    let mut found = Vec::new();
    for (path, item) in paths.into_iter().flatten() {
        let Some(item) = document.followed(item).ok().and_then(Value::as_object) else {
            continue;
        };
        for (key, operation) in item {
            let method = key.to_ascii_uppercase().parse::<HttpMethod>();
            if let (Ok(method), Some(operation)) = (method, operation.as_object()) {
                found.push(Found {
                    path,
                    method,
                    item,
                    operation,
                });
            }
        }
    }
    found
}

impl Found<'_> {
    /// Returns the `operationId`, or else method and path.
    pub(super) fn id(&self) -> String {
        let id = self.operation.get("operationId").and_then(Value::as_str);
        id.map_or_else(|| format!("{} {}", self.method.name(), self.path), str::to_owned)
    }

    /// Returns whether an operation is meant: by its `operationId`, or by method and path.
    pub(super) fn is_named(&self, id: &str) -> bool {
        let is_path = id
            .split_once(' ')
            .is_some_and(|(method, path)| method == self.method.name() && path == self.path);
        is_path || self.operation.get("operationId").is_some_and(|own| own == id)
    }
}
