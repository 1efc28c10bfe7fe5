//! Conditional requests. A session never changes, so its root hash is its entity tag.

use axum::http::{HeaderMap, HeaderValue, header};

use crate::http::headers;
use values::session::Hash;

/// Returns whether the caller already has the session with this root hash.
pub(super) fn caller_has(headers: &HeaderMap, root_hash: Hash) -> bool {
    headers::caller_has(headers, &format!("\"{root_hash}\""))
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
