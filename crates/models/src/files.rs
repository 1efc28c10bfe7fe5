//! Reads text files, which some protocols accept only as text, addresses that hold their data, and
//! references to files stored at a provider. Knows no provider's JSON.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use values::json::Value;
use values::message::{ContentPart, DocumentPart, ImagePart, MediaSource, is_text_type};

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
        MediaSource::Base64 { media_type, data } if is_text_type(media_type) => decoded_text(data),
        _ => None,
    }
}

/// An image or a file of a message, in the form for a model.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attachment<'a> {
    /// A picture.
    Image(&'a ImagePart),
    /// A file.
    Document(&'a DocumentPart),
    /// The text that replaces a picture or a file.
    Words(String),
}

impl<'a> Attachment<'a> {
    /// Returns the picture or the file of a part; `None` if the part is neither.
    pub(super) fn of(part: &'a ContentPart) -> Option<Self> {
        match part {
            ContentPart::Image(part) => Some(Self::Image(part)),
            ContentPart::Document(part) => Some(Self::Document(part)),
            _ => None,
        }
    }

    /// Returns where the bytes are; `None` for a text.
    pub(super) fn source(&self) -> Option<&'a MediaSource> {
        match self {
            Self::Image(part) => Some(&part.source),
            Self::Document(part) => Some(&part.source),
            Self::Words(_) => None,
        }
    }

    /// Names the picture or the file.
    pub(super) fn what(&self) -> String {
        let what = match self {
            Self::Document(DocumentPart { name: Some(name), .. }) => format!("a file {name:?}"),
            Self::Document(_) => "a file".to_owned(),
            _ => "a picture".to_owned(),
        };
        match self.source() {
            Some(MediaSource::Url { url }) if !url.starts_with("data:") => format!("{what} at {url}"),
            _ => what,
        }
    }

    /// Says that a file is stored at another provider.
    pub(super) fn elsewhere(&self, owner: &str) -> String {
        let name = match self {
            Self::Document(DocumentPart { name: Some(name), .. }) => format!(" {name:?}"),
            _ => String::new(),
        };
        format!("[The file{name} is stored at the provider {owner}, and only its models can read it.]")
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
}
