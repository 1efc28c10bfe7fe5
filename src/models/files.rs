//! Reads text files, which some protocols accept only as text, and references to files stored at a
//! provider. Knows no provider's JSON.

use crate::json::Value;
use crate::message::{DocumentPart, MediaSource};

/// Returns a file of words as words that name it; `None` if it is no text.
pub(super) fn as_words(part: &DocumentPart) -> Option<String> {
    let words = words_of(&part.source)?;
    let name = part.name.as_deref().unwrap_or("document");
    Some(format!("<file name={}>\n{words}\n</file>", Value::from(name)))
}

/// Returns the words of a file that is given here; `None` if it is no text.
pub(super) fn words_of(source: &MediaSource) -> Option<String> {
    match source {
        MediaSource::Base64 { media_type, data } if is_text(media_type) => decoded_text(data),
        _ => None,
    }
}

/// A file that is stored at a provider.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StoredFile<'a> {
    /// At the provider that is asked, under this id.
    Here(&'a str),
    /// At another one: the text that replaces the file.
    Elsewhere(String),
}

/// Returns a file that is stored at a provider, as `provider` can take it; `None` if its bytes are
/// here or at an address.
pub(super) fn stored_file<'a>(source: &'a MediaSource, name: Option<&str>, provider: &str) -> Option<StoredFile<'a>> {
    let MediaSource::ProviderFile {
        provider: owner,
        file_id,
    } = source
    else {
        return None;
    };
    Some(if owner == provider {
        StoredFile::Here(file_id)
    } else {
        let name = name.map(|name| format!(" {name:?}")).unwrap_or_default();
        StoredFile::Elsewhere(format!(
            "[The file{name} is stored at the provider {owner}, and only its models can read it.]"
        ))
    })
}

/// Media types below `application/` that are text, without the `x-` of unregistered ones.
const TEXT_FORMATS: [&str; 13] = [
    "ecmascript",
    "javascript",
    "json",
    "json-lines",
    "jsonl",
    "jsonlines",
    "ndjson",
    "sh",
    "sql",
    "toml",
    "typescript",
    "xml",
    "yaml",
];

/// Returns whether a file is text.
fn is_text(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let Some((group, name)) = kind.split_once('/') else {
        return false;
    };
    let is_written_in = |ending: &str| name.ends_with(ending);
    group == "text"
        || ["+json", "+xml", "+yaml"].into_iter().any(is_written_in)
        || (group == "application" && TEXT_FORMATS.contains(&name.trim_start_matches("x-")))
}

/// Decodes base64 (RFC 4648, with or without padding) to text; `None` if it is not UTF-8 or not
/// base64.
fn decoded_text(data: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(data.len() / 4 * 3);
    let (mut bits, mut count) = (0_u32, 0);
    for byte in data.trim_end_matches('=').bytes() {
        let value = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6) | u32::from(value);
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((bits >> count) & 0xFF).ok()?);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_words_have_words() {
        for (media_type, data, words) in [
            ("text/markdown; charset=utf-8", "IyBHcsO8w59l", Some("# Grüße")),
            ("application/json", "e30", Some("{}")),
            ("application/problem+json", "e30=", Some("{}")),
            ("application/yaml", "e30", Some("{}")),
            ("application/x-yaml", "e30", Some("{}")),
            ("Application/X-YAML; charset=UTF-8", "e30", Some("{}")),
            ("application/openapi+yaml", "e30", Some("{}")),
            ("application/x-ndjson", "e30", Some("{}")),
            ("image/svg+xml", "e30", Some("{}")),
            ("image/yaml", "e30", None),
            ("application/zip", "e30", None),
            ("text", "e30", None),
            ("", "e30", None),
            ("application/pdf", "e30=", None),
            ("text/plain", "//8=", None),
            ("text/plain", "e 30", None),
        ] {
            let source = MediaSource::Base64 {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            };
            assert_eq!(words_of(&source).as_deref(), words, "{media_type} {data}");
        }
        let url = "https://h/a.txt".to_owned();
        assert_eq!(words_of(&MediaSource::Url { url }), None);
    }

    #[test]
    fn a_stored_file_is_its_owner_s_alone() {
        let stored = MediaSource::ProviderFile {
            provider: "p".to_owned(),
            file_id: "file-1".to_owned(),
        };
        assert_eq!(stored_file(&stored, None, "p"), Some(StoredFile::Here("file-1")));
        let words = "[The file \"a.pdf\" is stored at the provider p, and only its models can read it.]";
        let elsewhere = Some(StoredFile::Elsewhere(words.to_owned()));
        assert_eq!(stored_file(&stored, Some("a.pdf"), "q"), elsewhere);
        let url = "https://h/a.txt".to_owned();
        assert_eq!(stored_file(&MediaSource::Url { url }, None, "p"), None);
    }
}
