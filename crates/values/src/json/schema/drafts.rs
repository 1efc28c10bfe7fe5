//! Keywords of older drafts, which today's readers of schemas refuse.

use crate::json::{Object, Value};

/// Rewrites limits that are exclusive by a flag, as draft 4 and OpenAPI 3.0 have them: the limit
/// itself becomes the exclusive one. A flag without a limit goes.
pub fn modernise_limits(schema: &mut Object) {
    for (exclusive, inclusive) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        let Some(&Value::Bool(is_exclusive)) = schema.get(exclusive) else {
            continue;
        };
        schema.remove(exclusive);
        if is_exclusive && let Some(limit) = schema.remove(inclusive) {
            schema.insert(exclusive.to_owned(), limit);
        }
    }
}
