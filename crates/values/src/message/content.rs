//! The content parts of messages. Unknown kinds load, are retained and are shown; they are never an
//! error.

use serde::{Deserialize, Serialize};

use crate::json::{RawJson, Value};

/// One part of a message's content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// Words.
    Text(TextPart),
    /// A picture.
    Image(ImagePart),
    /// A file, such as a PDF.
    Document(DocumentPart),
    /// The model asks for a tool.
    ToolCall(ToolCall),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// The model's reasoning.
    Reasoning(ReasoningPart),
    /// The model declines, in its own words.
    Refusal {
        /// The words.
        text: String,
    },
    /// A block that only its provider understands.
    Opaque(OpaquePart),
    /// A part that a later version wrote.
    #[serde(untagged)]
    Unknown(Value),
}

/// Words, with the sources they cite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TextPart {
    /// The words.
    pub text: String,
    /// The sources, as the provider gave them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub citations: Vec<Citation>,
    /// Opaque mark of the provider that goes back with the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// A source that a text cites: the provider's own object, verbatim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(transparent)]
#[schema(value_type = String)]
pub struct Citation(pub RawJson);

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ImagePart {
    /// Where its bytes are.
    pub source: MediaSource,
    /// How closely the model shall look, such as `low` or `high`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct DocumentPart {
    /// Where its bytes are.
    pub source: MediaSource,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// Where the bytes of an image or a document are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MediaSource {
    /// At an address that the provider reads.
    Url {
        /// The address.
        url: String,
    },
    /// Here, in base64 (RFC 4648, with padding).
    Base64 {
        /// The IANA media type, such as `image/png`.
        media_type: String,
        /// The encoded bytes.
        data: String,
    },
    /// Among the files that were uploaded to a provider. Models of other providers are told that
    /// there is a file.
    ProviderFile {
        /// The provider's configured name, such as `openai`.
        provider: String,
        /// The provider's id of the file.
        file_id: String,
    },
}

impl MediaSource {
    /// Returns the bytes of a `data:` URL in base64 as bytes. Any other source stays as it is.
    #[must_use]
    pub fn inlined(self) -> Self {
        let Self::Url { url } = &self else { return self };
        match read_data_url(url) {
            Some((media_type, data)) => Self::Base64 {
                media_type: media_type.to_owned(),
                data: data.to_owned(),
            },
            None => self,
        }
    }

    /// Joins the lines of base64, and names a JPEG as providers do. Many encoders break lines, and
    /// providers refuse that.
    pub fn tidy(&mut self) {
        if let Self::Base64 { media_type, data } = self {
            data.retain(|c| !c.is_ascii_whitespace());
            if media_type == "image/jpg" {
                "image/jpeg".clone_into(media_type);
            }
        }
    }
}

/// Returns the media type and the data of a `data:` URL in base64.
fn read_data_url(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once(':')?;
    let (head, data) = rest.split_once(',')?;
    let (head, encoding) = head.rsplit_once(';')?;
    let is_data = scheme.eq_ignore_ascii_case("data") && encoding.eq_ignore_ascii_case("base64");
    // Parameters such as `charset` may follow the media type.
    let media_type = head.split(';').next()?;
    is_data.then_some((media_type, data))
}

/// A call that the model asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolCall {
    /// Pairs the call with its result; unique in its message.
    pub id: String,
    /// The tool's name, as the model said it.
    pub name: String,
    /// The arguments exactly as the model wrote them: mostly, not surely, a JSON object.
    pub arguments: String,
    /// Opaque mark of the provider that goes back with the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

impl ToolCall {
    /// The longest id that every server accepts, except servers that demand one length.
    pub const PLAIN_ID: usize = 40;

    /// Returns whether all servers accept the id that do not demand one length: at most 40 letters,
    /// digits, `_` and `-`.
    pub fn has_plain_id(&self) -> bool {
        is_plain_id(&self.id, Self::PLAIN_ID)
    }
}

/// Returns whether an id has at most so many letters, digits, `_` and `-`.
pub fn is_plain_id(id: &str, most: usize) -> bool {
    id.len() <= most && id.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'_' || c == b'-')
}

/// The result of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ToolResult {
    /// The call that it answers.
    pub call_id: String,
    /// The tool's name.
    pub name: String,
    /// The answer: texts, images and documents.
    #[schema(no_recursion)]
    pub content: Vec<ContentPart>,
    /// Whether the answer is an error.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
}

/// The model's reasoning, readable or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReasoningPart {
    /// The readable words; empty when the provider keeps them to itself.
    pub text: String,
    /// The provider's signature over the words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// The encrypted form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encrypted: Option<String>,
    /// The provider's name for the block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
}

/// A block that only its provider understands; it goes back unchanged, in its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct OpaquePart {
    /// The provider's configured name, such as `mistral`.
    pub provider: String,
    /// The block, verbatim.
    pub raw: RawJson,
}

impl ContentPart {
    /// Makes a part of plain words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextPart {
            text: text.into(),
            ..TextPart::default()
        })
    }

    /// Returns the words of a text part.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(part) => Some(&part.text),
            _ => None,
        }
    }

    /// Returns whether the part has something that goes back to its maker alone: citations, a
    /// signature, encrypted reasoning, a block of the provider, or an id that other servers may
    /// refuse.
    pub fn is_owned(&self) -> bool {
        match self {
            Self::Text(part) => !part.citations.is_empty() || part.signature.is_some(),
            Self::Reasoning(part) => part.signature.is_some() || part.encrypted.is_some(),
            Self::ToolCall(call) => call.signature.is_some() || !call.has_plain_id(),
            Self::Opaque(_) => true,
            _ => false,
        }
    }
}
