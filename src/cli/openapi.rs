//! `openapi`: prints the OpenAPI document.

use super::output::print_line;
use crate::http;

/// Prints the document as JSON.
pub(super) fn print() -> anyhow::Result<()> {
    Ok(print_line(http::openapi().to_pretty_json()?)?)
}
