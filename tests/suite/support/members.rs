//! Members of JSON documents: comparing some, reading a column of a list, adding others.

use std::fmt::Arguments;

use values::json::Value;

/// Checks these members of a document: `assert_members!(run, {"status": "failed", "error/code":
/// "conflict"})`. A member that is missing is null. A message may follow.
macro_rules! assert_members {
    ($document:expr, $expected:tt) => {
        crate::support::members::assert_members!($document, $expected, "")
    };
    ($document:expr, $expected:tt, $($message:tt)+) => {
        crate::support::members::compare(&$document, &serde_json::json!($expected), format_args!($($message)+))
    };
}
pub(crate) use assert_members;

/// Compares the members at these paths.
#[track_caller]
pub(crate) fn compare(document: &Value, expected: &Value, message: Arguments<'_>) {
    let member = |path: &String| document.pointer(&format!("/{path}")).cloned().unwrap_or_default();
    let paths = expected.as_object().unwrap().keys();
    let members: Value = paths.map(|path| (path.clone(), member(path))).collect();
    assert_eq!(&members, expected, "{message}\n{document:#}");
}

/// Returns the member at a path of each element of a list. A member that is missing is null.
pub(crate) fn column<'a>(list: &'a Value, path: &str) -> Vec<&'a Value> {
    static NULL: Value = Value::Null;
    let pointer = format!("/{path}");
    let rows = list.as_array().unwrap().iter();
    rows.map(|row| row.pointer(&pointer).unwrap_or(&NULL)).collect()
}

/// Returns an object with these members added, or replaced.
pub(crate) fn extended(mut object: Value, more: &Value) -> Value {
    let more = more.as_object().unwrap().clone();
    object.as_object_mut().unwrap().extend(more);
    object
}
