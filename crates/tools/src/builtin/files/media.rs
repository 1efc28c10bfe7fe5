//! Recognises files that are no text by their first bytes. Makes content parts of the files that
//! models can see.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use agent::ports::ToolError;
use values::message::{ContentPart, DocumentPart, ImagePart, MediaSource, picture_problem};
use workspace::FilePath;

/// The largest image or document that a model is shown, in bytes.
pub(super) const MAX_MEDIA_BYTES: usize = 5 << 20;

/// The kinds of files by their first bytes.
const MAGIC: &[(&[u8], &str)] = &[
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\x7fELF", "application/x-executable"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"\0asm", "application/wasm"),
];

/// Returns the media type of a file that begins like no text.
pub(crate) fn media_type(bytes: &[u8]) -> Option<&'static str> {
    let is_webp = bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP");
    if is_webp {
        return Some("image/webp");
    }
    let known = MAGIC.iter().find(|(magic, _)| bytes.starts_with(magic));
    known.map(|(_, media_type)| *media_type)
}

/// Returns the content parts of an image or of a PDF; an error for any other media type.
pub(super) fn visible(path: &FilePath, media_type: &'static str, bytes: &[u8]) -> Result<Vec<ContentPart>, ToolError> {
    let (size, max) = (bytes.len(), MAX_MEDIA_BYTES);
    let is_image = media_type.starts_with("image/");
    if !is_image && media_type != "application/pdf" {
        return Err(binary(path, Some(media_type), size));
    }
    if size > max {
        let message = format!("{path} ({media_type}) has {size} bytes, more than the {max} that can be shown");
        return Err(ToolError::new(message));
    }
    let data = STANDARD.encode(bytes);
    if is_image && let Some(problem) = picture_problem(&data) {
        return Err(ToolError::new(format!(
            "{path} ({media_type}) can't be shown: {problem}. Make a smaller copy, and read that"
        )));
    }
    let source = MediaSource::Base64 {
        media_type: media_type.to_owned(),
        data,
    };
    let part = if is_image {
        ContentPart::Image(ImagePart { source, detail: None })
    } else {
        let name = Some(path.name().to_owned());
        ContentPart::Document(DocumentPart { source, name })
    };
    Ok(vec![
        ContentPart::text(format!("{path}: {media_type}, {size} bytes")),
        part,
    ])
}

/// Makes the error of a file that is no text.
pub(super) fn binary(path: &FilePath, media_type: Option<&str>, size: usize) -> ToolError {
    let media_type = media_type.unwrap_or("of unknown type");
    ToolError::new(format!(
        "{path} is a binary file ({media_type}, {size} bytes), which can't be shown as text"
    ))
}
