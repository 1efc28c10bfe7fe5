//! The kind of a response's body, and its text. No IO.

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use net::outgoing::HeaderMap;

/// How many bytes at the beginning of a body show its kind and its encoding.
const BEGINNING: usize = 1024;

/// The kind of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaKind {
    Html,
    Text,
    Binary,
}

/// The kind and the encoding of a body, by its headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContentType {
    /// The media type without parameters, in lower case; empty if there is none.
    pub(crate) media_type: String,
    charset: Option<String>,
    /// Whether the body is compressed in a way that the request did not allow.
    is_compressed: bool,
}

impl ContentType {
    /// Reads the header `Content-Type`.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let value = headers.get("content-type").and_then(|value| value.to_str().ok());
        let mut parts = value.unwrap_or_default().split(';').map(str::trim);
        let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
        let charset = parts.find_map(|part| {
            let (name, value) = part.split_once('=')?;
            name.trim().eq_ignore_ascii_case("charset").then(|| unquoted(value))
        });
        Self {
            media_type,
            charset,
            is_compressed: headers.get("content-encoding").is_some_and(|value| value != "identity"),
        }
    }

    /// Returns the kind of a body by its media type; `None` without a media type.
    pub(crate) fn declared_kind(&self) -> Option<MediaKind> {
        if self.is_compressed {
            return Some(MediaKind::Binary);
        }
        let (kind, subtype) = self.media_type.split_once('/')?;
        let is_text = kind == "text"
            || subtype.ends_with("+json")
            || subtype.ends_with("+xml")
            || subtype.ends_with("+yaml")
            || matches!(
                subtype,
                "json"
                    | "xml"
                    | "javascript"
                    | "ecmascript"
                    | "yaml"
                    | "x-yaml"
                    | "toml"
                    | "x-ndjson"
                    | "jsonl"
                    | "x-www-form-urlencoded"
                    | "graphql"
                    | "sql"
                    | "x-sh"
            );
        Some(match self.media_type.as_str() {
            "text/html" | "application/xhtml+xml" => MediaKind::Html,
            _ if is_text => MediaKind::Text,
            _ => MediaKind::Binary,
        })
    }

    /// Returns the kind of a body. Without a media type, its beginning decides.
    pub(crate) fn kind(&self, body: &[u8]) -> MediaKind {
        self.declared_kind().unwrap_or_else(|| {
            let beginning = &body[..body.len().min(BEGINNING)];
            let text = beginning.trim_ascii_start().to_ascii_lowercase();
            if beginning.contains(&0) {
                MediaKind::Binary
            } else if text.starts_with(b"<!doctype html") || text.starts_with(b"<html") {
                MediaKind::Html
            } else {
                MediaKind::Text
            }
        })
    }

    /// Decodes a body: by a byte order mark, the header, the declaration of XML, the beginning of a
    /// page, or as UTF-8.
    pub(crate) fn decode(&self, body: &[u8]) -> String {
        let declared = self
            .charset
            .as_deref()
            .and_then(encoding)
            .or_else(|| xml_encoding(body));
        let encoding = declared.or_else(|| (self.kind(body) == MediaKind::Html).then(|| page_encoding(body))?);
        let (text, ..) = encoding.unwrap_or(UTF_8).decode(body);
        text.into_owned()
    }
}

fn encoding(label: &str) -> Option<&'static Encoding> {
    Encoding::for_label(label.as_bytes())
}

/// Finds the encoding that XML declares, or shows by the bytes of its declaration.
fn xml_encoding(body: &[u8]) -> Option<&'static Encoding> {
    if body.starts_with(b"<\0?\0") {
        return Some(UTF_16LE);
    }
    if body.starts_with(b"\0<\0?") {
        return Some(UTF_16BE);
    }
    let beginning = &body[..body.len().min(BEGINNING)];
    let declaration = beginning.trim_ascii_start().strip_prefix(b"<?xml")?;
    let end = declaration.windows(2).position(|bytes| bytes == b"?>")?;
    let declaration = String::from_utf8_lossy(&declaration[..end]).to_ascii_lowercase();
    let (_, value) = declaration.split_once("encoding")?;
    let value = value.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    ascii_compatible(value[1..].split(quote).next()?.trim())
}

/// Returns a declared encoding. A declaration that can be read as ASCII is not in UTF-16.
fn ascii_compatible(label: &str) -> Option<&'static Encoding> {
    encoding(label).map(|found| if found.is_ascii_compatible() { found } else { UTF_8 })
}

/// Finds the encoding that a page names in a `<meta>`.
fn page_encoding(body: &[u8]) -> Option<&'static Encoding> {
    let beginning = String::from_utf8_lossy(&body[..body.len().min(BEGINNING)]).to_ascii_lowercase();
    let (_, rest) = beginning.split_once("charset=")?;
    let label = rest.trim_start_matches(['"', '\'', ' ']);
    let end = label.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':')));
    ascii_compatible(&label[..end.unwrap_or(label.len())])
}

fn unquoted(value: &str) -> String {
    value.trim().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use net::outgoing::HeaderValue;

    fn content(media_type: &'static str) -> ContentType {
        let mut headers = HeaderMap::new();
        if !media_type.is_empty() {
            headers.insert("content-type", HeaderValue::from_static(media_type));
        }
        ContentType::of(&headers)
    }

    #[test]
    fn the_media_type_decides_the_kind_and_else_the_beginning() {
        for (media_type, body, expected) in [
            ("text/html; charset=utf-8", "", MediaKind::Html),
            ("APPLICATION/XHTML+XML", "", MediaKind::Html),
            ("text/plain", "<html>", MediaKind::Text),
            ("application/json", "", MediaKind::Text),
            ("application/problem+json", "", MediaKind::Text),
            ("image/svg+xml", "", MediaKind::Text),
            ("image/png", "", MediaKind::Binary),
            ("application/pdf", "", MediaKind::Binary),
            ("application/octet-stream", "abc", MediaKind::Binary),
            ("", " <!DOCTYPE html><p>", MediaKind::Html),
            ("", "<HTML lang=en>", MediaKind::Html),
            ("", "abc", MediaKind::Text),
            ("", "a\0c", MediaKind::Binary),
            ("nonsense", "abc", MediaKind::Text),
        ] {
            assert_eq!(
                content(media_type).kind(body.as_bytes()),
                expected,
                "{media_type:?} {body:?}"
            );
        }
    }

    #[test]
    fn a_body_that_is_still_compressed_is_binary() {
        for (encoding, expected) in [("deflate", MediaKind::Binary), ("identity", MediaKind::Text)] {
            let mut headers = HeaderMap::new();
            headers.insert("content-type", HeaderValue::from_static("text/plain"));
            headers.insert("content-encoding", HeaderValue::from_static(encoding));
            assert_eq!(ContentType::of(&headers).kind(b"abc"), expected, "{encoding}");
        }
    }

    #[test]
    fn a_body_is_decoded_by_its_encoding() {
        let latin = b"<meta charset=\"iso-8859-1\"><p>\xe9";
        for (media_type, body, expected) in [
            ("text/plain", &b"\xc3\xa9"[..], "é"),
            ("text/plain; Charset=\"ISO-8859-1\"", b"\xe9", "é"),
            ("text/plain; charset=shift_jis", b"\x83\x65", "テ"),
            ("text/plain; charset=iso-8859-1", b"\xef\xbb\xbf\xc3\xa9", "é"),
            ("text/plain; charset=nonsense", b"\xc3\xa9", "é"),
            ("text/plain", b"a\xffb", "a\u{fffd}b"),
            ("text/html", latin, "<meta charset=\"iso-8859-1\"><p>é"),
            (
                "application/rss+xml",
                b"<?xml version='1.0' encoding='windows-1251'?><a>\xcf\xf0</a>",
                "<?xml version='1.0' encoding='windows-1251'?><a>Пр</a>",
            ),
            (
                "text/plain",
                b"\n<?xml encoding = \"iso-8859-1\"?>\xe9",
                "\n<?xml encoding = \"iso-8859-1\"?>é",
            ),
            (
                "application/xml; charset=utf-8",
                b"<?xml encoding=\"iso-8859-1\"?>\xc3\xa9",
                "<?xml encoding=\"iso-8859-1\"?>é",
            ),
            (
                "application/xml",
                b"\xef\xbb\xbf<?xml encoding=\"iso-8859-1\"?>\xc3\xa9",
                "<?xml encoding=\"iso-8859-1\"?>é",
            ),
            (
                "application/xml",
                b"<?xml encoding=\"utf-16\"?>\xc3\xa9",
                "<?xml encoding=\"utf-16\"?>é",
            ),
            ("application/xml", b"<\0?\0x\0m\0l\0?\0>\0", "<?xml?>"),
            (
                "application/xhtml+xml",
                b"<?xml encoding='iso-8859-1'?><meta charset='utf-8'><p>\xe9",
                "<?xml encoding='iso-8859-1'?><meta charset='utf-8'><p>é",
            ),
            (
                "text/html; charset=utf-8",
                b"<meta charset=latin1>\xc3\xa9",
                "<meta charset=latin1>é",
            ),
        ] {
            assert_eq!(content(media_type).decode(body), expected, "{media_type}");
        }
    }
}
