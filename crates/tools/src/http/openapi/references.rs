//! References within a document. Others are refused, so no file and no address is read.

use std::cell::Cell;

use percent_encoding::percent_decode_str;

use values::json::Value;

/// The longest chain of references.
const MAX_CHAIN: usize = 8;
/// The most values of all schemas of an operation. References can multiply a schema.
const MAX_VALUES: usize = 5_000;

/// A document, and how many values may still be copied out of it for one operation.
pub(super) struct Document<'d> {
    root: &'d Value,
    left: Cell<usize>,
}

impl<'d> Document<'d> {
    pub(super) fn new(root: &'d Value) -> Self {
        Self {
            root,
            left: Cell::new(MAX_VALUES),
        }
    }

    pub(super) fn root(&self) -> &'d Value {
        self.root
    }

    /// Counts values that are copied. Fails if there are too many.
    pub(super) fn count(&self, values: usize) -> Result<(), String> {
        let left = self.left.get().checked_sub(values);
        let left = left.ok_or_else(|| format!("its schemas have more than {MAX_VALUES} values"))?;
        self.left.set(left);
        Ok(())
    }

    /// Returns the value that a reference leads to; any other value as it is.
    pub(super) fn followed(&self, value: &'d Value) -> Result<&'d Value, String> {
        let mut value = value;
        for _ in 0..MAX_CHAIN {
            match value.get("$ref").and_then(Value::as_str) {
                Some(reference) => value = self.target(reference)?,
                None => return Ok(value),
            }
        }
        Err(format!("a chain of references has more than {MAX_CHAIN}"))
    }

    /// Finds the target of a reference such as `#/components/schemas/Pet`.
    pub(super) fn target(&self, reference: &str) -> Result<&'d Value, String> {
        let pointer = reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/'));
        let pointer = pointer.ok_or_else(|| format!("the reference {reference:?} leads out of the document"))?;
        let pointer = percent_decode_str(pointer).decode_utf8_lossy();
        let target = self.root.pointer(&pointer);
        target.ok_or_else(|| format!("the reference {reference:?} leads nowhere"))
    }
}
