//! A file of the console, or a page of the guides, with its headers: a page may load its own files
//! and ask its own service, and nothing else.

use std::io::Read as _;

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::GzDecoder;
use ring::digest::{SHA256, digest};

use crate::http::headers::caller_has;
use crate::http::sessions::files::media_types::media_type;

/// The policy of a page up to its scripts.
const SCRIPTS: &str = "default-src 'none'; script-src 'self'";
/// The rest of the policy. Trusted Types refuse markup and scripts that are made of text.
const OTHERS: &str = "; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; \
     form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A file with its headers, in one form: plain, or compressed with gzip.
#[derive(Debug)]
pub(in crate::http) struct PageFile {
    bytes: Bytes,
    is_compressed: bool,
    media_type: &'static str,
    /// The quoted hash of the bytes, so each form has its own.
    tag: String,
    policy: String,
}

impl PageFile {
    /// Makes the headers of a plain file.
    pub(in crate::http) fn plain(name: &str, bytes: Bytes) -> Self {
        Self {
            is_compressed: false,
            // Licences and checksums have names without a dot.
            media_type: if name.contains('.') {
                media_type(name)
            } else {
                "text/plain; charset=utf-8"
            },
            tag: tag(&bytes),
            policy: policy(&bytes),
            bytes,
        }
    }

    /// Makes the headers of a compressed file. Its type and its policy are those of the plain one.
    pub(super) fn compressed(name: &str, gzip: &'static [u8]) -> Self {
        Self {
            bytes: Bytes::from_static(gzip),
            is_compressed: true,
            tag: tag(gzip),
            ..Self::plain(name, decompressed(gzip).into())
        }
    }

    /// Responds with the file, unless the caller has it.
    pub(in crate::http) fn respond(&self, headers: &HeaderMap) -> Response {
        let response = if caller_has(headers, &self.tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            let coding = self.is_compressed.then_some([(header::CONTENT_ENCODING, "gzip")]);
            let kind = [(header::CONTENT_TYPE, self.media_type)];
            // Responses share a file of the program, so slow readers need no memory of their own.
            (coding, kind, self.bytes.clone()).into_response()
        };
        let headers = [
            (header::ETAG.as_str(), self.tag.as_str()),
            (header::VARY.as_str(), "accept-encoding"),
            (header::CACHE_CONTROL.as_str(), "no-cache"),
            (header::CONTENT_SECURITY_POLICY.as_str(), self.policy.as_str()),
            (header::X_FRAME_OPTIONS.as_str(), "DENY"),
            (header::REFERRER_POLICY.as_str(), "no-referrer"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
        ];
        (headers, response).into_response()
    }
}

/// Decompresses a file of the program.
#[expect(clippy::expect_used, reason = "`build.rs` has compressed the bytes")]
pub(super) fn decompressed(gzip: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut plain).expect("valid gzip");
    plain
}

fn tag(bytes: &[u8]) -> String {
    format!("\"{}\"", blake3::hash(bytes))
}

/// Makes the policy of a page. Its import map is the only inline script.
fn policy(page: &[u8]) -> String {
    let allowed = import_map(page).map(|map| {
        let hash = STANDARD.encode(digest(&SHA256, map.as_bytes()));
        format!(" 'sha256-{hash}'")
    });
    format!("{SCRIPTS}{}{OTHERS}", allowed.unwrap_or_default())
}

fn import_map(page: &[u8]) -> Option<&str> {
    let (_, rest) = str::from_utf8(page).ok()?.split_once("<script type=\"importmap\">")?;
    rest.split_once("</script>").map(|(map, _)| map)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_allows_the_import_map_of_the_page() {
        assert_eq!(policy(b"x"), format!("{SCRIPTS}{OTHERS}"));
        // printf '{}' | openssl dgst -sha256 -binary | base64
        let page = b"<html><script type=\"importmap\">{}</script><script src=\"/a\"></script>";
        let hash = " 'sha256-RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o='";
        assert_eq!(policy(page), format!("{SCRIPTS}{hash}{OTHERS}"));
    }
}
