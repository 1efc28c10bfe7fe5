//! Fields that the protocol added later. They return with their item, as one object.

use serde_json::value::RawValue;

use crate::json::Value;
use crate::models::wire::Fields;

/// The most fields that are retained; an item with more is invalid.
const MAX_FIELDS: usize = 16;

/// Returns the fields of other names than the known ones, verbatim, as the text of one object;
/// `None` if there are none.
pub(super) fn unknown_fields(item: &Fields<'_>, known: &[&str]) -> Option<String> {
    let unknown = item.iter().filter(|(name, _)| !known.contains(name)).take(MAX_FIELDS);
    let fields: Vec<_> = unknown.map(|(name, raw)| field(name, raw)).collect();
    (!fields.is_empty()).then(|| object(&fields))
}

/// Returns the text of an object's field.
pub(super) fn field(name: &str, raw: &RawValue) -> String {
    format!("{}:{}", Value::from(name), raw.get())
}

/// Returns the text of an object of these fields.
pub(super) fn object(fields: &[String]) -> String {
    format!("{{{}}}", fields.join(","))
}
