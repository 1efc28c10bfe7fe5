//! Reads text files, which some protocols accept only as text, addresses that hold their data, and
//! references to files stored at a provider. Knows no provider's JSON.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use crate::json::Value;
use crate::message::{ContentPart, DocumentPart, ImagePart, MediaSource};

/// Also accepts the output of lenient encoders.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Returns a text file as text with its name; `None` if it is not text.
pub(super) fn as_words(part: &DocumentPart) -> Option<String> {
    let words = words_of(&part.source)?;
    let name = part.name.as_deref().unwrap_or("document");
    Some(format!("<file name={}>\n{words}\n</file>", Value::from(name)))
}

/// Returns the text of an inline file; `None` if it is not text.
pub(super) fn words_of(source: &MediaSource) -> Option<String> {
    match source {
        MediaSource::Base64 { media_type, data } if is_text(media_type) => decoded_text(data),
        _ => None,
    }
}

/// An image or a file of a message, in the form for a provider.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attachment<'a> {
    /// A picture.
    Image(&'a ImagePart),
    /// A file.
    Document(&'a DocumentPart),
    /// A file that is stored at another provider: the text that replaces it.
    Elsewhere(String),
}

impl<'a> Attachment<'a> {
    /// Returns the form of a part for `provider`; `None` if the part is neither an image nor a
    /// file.
    pub(super) fn of(part: &'a ContentPart, provider: &str) -> Option<Self> {
        let (attachment, source, name) = match part {
            ContentPart::Image(part) => (Self::Image(part), &part.source, None),
            ContentPart::Document(part) => (Self::Document(part), &part.source, part.name.as_deref()),
            _ => return None,
        };
        Some(match source {
            MediaSource::ProviderFile { provider: owner, .. } if owner != provider => {
                let name = name.map(|name| format!(" {name:?}")).unwrap_or_default();
                Self::Elsewhere(format!(
                    "[The file{name} is stored at the provider {owner}, and only its models can read it.]"
                ))
            }
            _ => attachment,
        })
    }
}

/// Returns the media type and the base64 data of a `data:` URL.
pub(super) fn inline_data(url: &str) -> Option<(&str, &str)> {
    url.strip_prefix("data:")?.split_once(";base64,")
}

/// Returns a `data:` URL with the data.
pub(super) fn data_url(media_type: &str, data: &str) -> String {
    format!("data:{media_type};base64,{data}")
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
/// base64. A last digit that is no whole byte is ignored.
fn decoded_text(data: &str) -> Option<String> {
    let data = data.trim_end_matches('=');
    let shorter = data.strip_suffix(|c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/'));
    let data = shorter.filter(|_| data.len() % 4 == 1).unwrap_or(data);
    let bytes = BASE64.decode(data).ok()?;
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
            ("text/plain", "YWJjZ", Some("abc")),
            ("text/plain", "YWJj-", None),
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
        let stored = DocumentPart {
            source: MediaSource::ProviderFile {
                provider: "p".to_owned(),
                file_id: "file-1".to_owned(),
            },
            name: Some("a.pdf".to_owned()),
        };
        let part = ContentPart::Document(stored.clone());
        assert_eq!(Attachment::of(&part, "p"), Some(Attachment::Document(&stored)));
        let words = "[The file \"a.pdf\" is stored at the provider p, and only its models can read it.]";
        assert_eq!(
            Attachment::of(&part, "q"),
            Some(Attachment::Elsewhere(words.to_owned()))
        );
        assert_eq!(Attachment::of(&ContentPart::text("x"), "p"), None);
        let picture = ImagePart {
            source: MediaSource::Url {
                url: "https://h/a.png".to_owned(),
            },
            detail: None,
        };
        let part = ContentPart::Image(picture.clone());
        assert_eq!(Attachment::of(&part, "p"), Some(Attachment::Image(&picture)));
    }
}
