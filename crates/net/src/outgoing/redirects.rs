//! Finds the URL that a response redirects to. The client checks it like the first one.

use reqwest::header::LOCATION;
use reqwest::{Method, Response, StatusCode, Url};

use super::target::Target;

/// Returns the URL to which a response redirects; `None` if it is no redirect or is not followed.
///
/// Only GET and HEAD are followed. Another request may have an effect, and its body is meant for
/// the first URL only.
pub(super) fn next(method: &Method, target: &Target, response: &Response) -> Option<Url> {
    let follows = matches!(*method, Method::GET | Method::HEAD);
    if !follows || !is_redirect(response.status()) {
        return None;
    }
    let location = response.headers().get(LOCATION)?.to_str().ok()?;
    target.url().join(location).ok()
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}
