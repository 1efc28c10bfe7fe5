//! Conditional requests. A session never changes, so its root hash is its entity tag.

use axum::http::{HeaderMap, HeaderValue, header};

use values::session::Hash;

/// Returns whether the caller already has the session with this root hash (RFC 9110,
/// `If-None-Match`, weak comparison).
pub(super) fn caller_has(headers: &HeaderMap, root_hash: Hash) -> bool {
    let tag = format!("\"{root_hash}\"");
    let given = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut tags = given.flat_map(|value| value.split(',')).map(str::trim);
    tags.any(|given| given == "*" || given.strip_prefix("W/").unwrap_or(given) == tag)
}

/// Returns the cache headers of a session: private, and revalidated by each request, since keys can
/// be revoked.
pub(super) fn headers(root_hash: Hash) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{root_hash}\"")) {
        headers.insert(header::ETAG, tag);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    headers
}
