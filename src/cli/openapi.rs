//! `openapi`: the document that describes the API.

use super::output::print_line;
use crate::http;

/// Prints the document as JSON.
pub(super) fn print() -> anyhow::Result<()> {
    Ok(print_line(http::openapi().to_pretty_json()?)?)
}
