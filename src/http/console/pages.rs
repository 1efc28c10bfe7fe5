//! The pages of the console, from the program or from a folder.
//!
//! Nobody's data are in them. An address that is no file is the address of a view, and so the page
//! itself.

use std::path::Path;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use tokio::fs;

use super::files::{INDEX, embedded};
use super::page_file::PageFile;
use crate::http::compression::accepts_gzip;
use crate::http::problem::Problem;
use crate::http::state::Api;

/// Responds with a file, or with the page.
pub(in crate::http) async fn page(
    State(api): State<Arc<Api>>,
    target: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let name = target.path().strip_prefix("/console/").unwrap_or_default();
    file(api.console()?.directory.as_deref(), name, &headers).await
}

/// Responds with a file of a directory or, without one, of the program. Without such a file, it
/// responds with the page.
pub(in crate::http) async fn file(
    directory: Option<&Path>,
    name: &str,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    Ok(match directory {
        None => embedded(name, accepts_gzip(headers)).respond(headers),
        Some(directory) => read(directory, name).await?.respond(headers),
    })
}

/// Reads a file of a folder, or the page.
async fn read(directory: &Path, name: &str) -> Result<PageFile, Problem> {
    if is_plain(name)
        && let Ok(bytes) = fs::read(directory.join(name)).await
    {
        return Ok(PageFile::plain(name, bytes.into()));
    }
    let bytes = fs::read(directory.join(INDEX)).await.map_err(Problem::internal)?;
    Ok(PageFile::plain(INDEX, bytes.into()))
}

/// Returns whether a path leads to a file below the folder and not to a hidden one.
fn is_plain(name: &str) -> bool {
    let is_plain = |part: &str| {
        let allowed = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
        !part.is_empty() && !part.starts_with('.') && part.bytes().all(allowed)
    };
    name.split('/').all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_below_the_folder_are_plain() {
        for (name, plain) in [
            ("app.js", true),
            ("vendor/LICENSE-htm", true),
            ("a/b/c.min.js", true),
            ("", false),
            ("/app.js", false),
            ("../Cargo.toml", false),
            ("vendor/../../Cargo.toml", false),
            ("..", false),
            (".env", false),
            ("vendor/.git/config", false),
            ("vendor//a.js", false),
            ("%2e%2e/Cargo.toml", false),
            ("..\\Cargo.toml", false),
            ("a\0.js", false),
            ("C:x", false),
        ] {
            assert_eq!(is_plain(name), plain, "{name}");
        }
    }
}
