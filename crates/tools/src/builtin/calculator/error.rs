//! Why an expression has no value.

/// The longest expression, in characters.
pub(super) const MAX_LENGTH: usize = 1_000;
/// The deepest nesting of parentheses, calls, signs and powers.
pub(super) const MAX_DEPTH: usize = 64;

/// An expression without a value, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ExpressionError {
    #[error("the expression is empty")]
    Empty,
    #[error("the expression is too long; the most are {MAX_LENGTH} characters")]
    TooLong,
    #[error("the expression is nested too deeply; the most are {MAX_DEPTH} levels")]
    TooDeep,
    #[error("{found} at position {position} is not expected; {expected} is")]
    Unexpected {
        found: String,
        position: usize,
        expected: &'static str,
    },
    #[error("{0:?} is not a number")]
    Number(String),
    #[error("the name {name:?} is unknown; known are {known}")]
    UnknownName { name: String, known: &'static str },
    #[error("{name} takes {wanted}, not {given}")]
    ArgumentCount {
        name: String,
        wanted: &'static str,
        given: usize,
    },
    #[error("division by zero")]
    DivisionByZero,
    #[error("the result is too large")]
    TooLarge,
    #[error("there is no real result, as for the root of a negative number or the logarithm of zero")]
    NotReal,
}
