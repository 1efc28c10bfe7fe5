//! Checks the web page that a request comes from. Other callers send no origin.
//!
//! `host.rs` protects a service without API keys from pages that resolve their own names to it (DNS
//! rebinding). With keys, such a page has no key to send.

use axum::http::{HeaderMap, header};

use crate::http::codes::ProblemCode;
use crate::http::host::is_own_origin;
use crate::http::mcp_settings::McpSettings;
use crate::http::problem::Problem;

/// Refuses pages of other origins than the service's own and the configured ones.
pub(super) fn check_origin(headers: &HeaderMap, settings: &McpSettings) -> Result<(), Problem> {
    let is_allowed = |origin: &str| {
        is_own_origin(origin, headers) || settings.allowed_origins.contains(&origin.to_ascii_lowercase())
    };
    let mut origins = headers.get_all(header::ORIGIN).iter();
    if origins.all(|origin| origin.to_str().is_ok_and(is_allowed)) {
        return Ok(());
    }
    let words = "the header Origin names a web page that `http.mcp.allowed_origins` does not allow";
    Err(Problem::new(ProblemCode::OriginNotAllowed, words))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_allowed(origins: &[&str]) -> bool {
        let settings = McpSettings::new(["https://app.example".to_owned()].into(), None).unwrap();
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, "agents.example:8080".parse().unwrap());
        for origin in origins {
            headers.append(header::ORIGIN, origin.parse().unwrap());
        }
        check_origin(&headers, &settings).is_ok()
    }

    #[test]
    fn only_known_pages_may_call() {
        assert!(is_allowed(&[]));
        assert!(is_allowed(&["https://app.example"]));
        assert!(is_allowed(&["HTTPS://APP.example"]));
        assert!(is_allowed(&["http://agents.example:8080"]));
        for wrong in [
            "null",
            "http://app.example",
            "https://app.example:8443",
            "https://app.example.evil",
            "http://agents.example",
            "http://evil.example:8080",
            "",
        ] {
            assert!(!is_allowed(&[wrong]), "{wrong}");
        }
        assert!(!is_allowed(&["https://app.example", "http://evil.example"]));
    }
}
