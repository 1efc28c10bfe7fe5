//! Errors as text, with their causes.

use std::error::Error;

/// Joins the error and its causes. Causes that an error has printed itself are left out.
pub fn with_causes(error: &dyn Error) -> String {
    let mut chain = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let words = cause.to_string();
        if !chain.ends_with(&words) {
            chain.push_str(": ");
            chain.push_str(&words);
        }
        next = cause.source();
    }
    chain
}
