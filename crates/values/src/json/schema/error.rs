//! Why a schema can't be used, and how its faults are quoted.

/// The largest schema, in bytes of its JSON.
pub(super) const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// The longest description of a violation, in characters.
const MAX_VIOLATION_LENGTH: usize = 300;
/// The most characters of a quoted value. The explanation follows after the quote.
const MAX_QUOTED_LENGTH: usize = 100;

/// A schema that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The schema is too large.
    #[error("the schema has {bytes} bytes; the most are {MAX_SCHEMA_BYTES}")]
    TooLarge {
        /// Its size as JSON.
        bytes: usize,
    },
    /// Compiling it, or checking values with it, would take too much work.
    #[error("the schema can't be used: {message}")]
    TooMuch {
        /// The limit that is exceeded, in words.
        message: String,
    },
    /// The schema does not describe an object.
    #[error("the schema must have \"type\": \"object\"")]
    NotOfObject,
    /// The schema is not valid, or refers to something outside of itself.
    #[error("the schema is not valid: {message}")]
    Invalid {
        /// The fault, in words.
        message: String,
    },
}

/// Shortens the description of a fault.
pub(super) fn shortened(text: &str) -> String {
    cut(text, MAX_VIOLATION_LENGTH)
}

/// Shortens a value that is quoted.
pub(super) fn quoted(text: &str) -> String {
    cut(text, MAX_QUOTED_LENGTH)
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
