//! Payloads: bytes with a version and an encoding, compressed if that saves enough. Does not
//! interpret the bytes.

use std::borrow::Cow;
use std::io;

use serde::de::DeserializeOwned;
use zstd::zstd_safe::get_frame_content_size;

use super::compression::{compress, decompress};

/// The bytes without compression.
const RAW: i16 = 0;
/// One zstd frame with the size of its content, compressed with the dictionary.
const ZSTD: i16 = 1;
/// The newest encoding that this version reads.
pub(crate) const NEWEST_ENCODING: i16 = ZSTD;
/// The most uncompressed bytes of a payload. Bounds the memory that a damaged or hostile row can
/// allocate.
const MAX_LENGTH: usize = 256 << 20;
/// Shorter payloads are not worth compressing.
const MIN_COMPRESSED_LENGTH: usize = 96;

/// A payload to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// The version of its content.
    pub schema_version: i16,
    /// How its bytes are compressed: 0 for no compression, 1 for a zstd frame with the size of its
    /// content, compressed with the dictionary.
    pub encoding: i16,
    /// The bytes, compressed.
    pub bytes: Vec<u8>,
}

/// Why a payload can't be stored.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// The payload is longer than any that can be read.
    #[error("the payload has {length} bytes, more than the {MAX_LENGTH} that can be read back")]
    TooLong {
        /// The bytes of the payload, uncompressed.
        length: usize,
    },
    /// The compressor failed.
    #[error("the payload can't be compressed")]
    Compress(#[source] io::Error),
    /// The value can't be represented as JSON.
    #[error("the payload can't be written as JSON")]
    Json(#[source] serde_json::Error),
}

impl Payload {
    /// Compresses the bytes if that saves an eighth of them.
    pub(crate) fn encode(schema_version: i16, bytes: Vec<u8>) -> Result<Self, EncodeError> {
        if bytes.len() > MAX_LENGTH {
            return Err(EncodeError::TooLong { length: bytes.len() });
        }
        if bytes.len() >= MIN_COMPRESSED_LENGTH {
            let compressed = compress(&bytes).map_err(EncodeError::Compress)?;
            if compressed.len() <= bytes.len() - bytes.len() / 8 {
                return Ok(Self {
                    schema_version,
                    encoding: ZSTD,
                    bytes: compressed,
                });
            }
        }
        Ok(Self::plain(schema_version, bytes))
    }

    /// Wraps the bytes without compressing them.
    pub(crate) fn plain(schema_version: i16, bytes: Vec<u8>) -> Self {
        Self {
            schema_version,
            encoding: RAW,
            bytes,
        }
    }

    /// Returns the payload as stored.
    pub fn as_stored(&self) -> StoredPayload<'_> {
        StoredPayload {
            schema_version: self.schema_version,
            encoding: self.encoding,
            bytes: &self.bytes,
        }
    }
}

/// A stored payload.
#[derive(Debug, Clone, Copy)]
pub struct StoredPayload<'a> {
    /// The version of its content.
    pub schema_version: i16,
    /// How its bytes are compressed.
    pub encoding: i16,
    /// The bytes, compressed.
    pub bytes: &'a [u8],
}

impl StoredPayload<'_> {
    /// Returns the bytes of the payload, uncompressed, as [`full_length`] does.
    pub(crate) fn length(&self) -> u64 {
        full_length(self.encoding, self.bytes, self.bytes.len() as u64)
    }
}

/// Returns the uncompressed size that the first 18 bytes of a payload state. Returns at least the
/// stored size. Returns at most [`MAX_LENGTH`], since a damaged payload may state any number and
/// callers add the sizes up.
pub(crate) fn full_length(encoding: i16, beginning: &[u8], stored: u64) -> u64 {
    let stated = (encoding == ZSTD).then(|| get_frame_content_size(beginning).ok().flatten());
    let stated = stated.flatten().map_or(0, |bytes| bytes.min(MAX_LENGTH as u64));
    stated.max(stored)
}

/// Why a stored payload can't be read.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// A later version of agent-runtime wrote it.
    #[error("version {found} is newer than {known}, the newest that this version of agent-runtime reads")]
    NewerVersion {
        /// The version that was found.
        found: i16,
        /// The newest version that this code reads.
        known: i16,
    },
    /// No version is below 1.
    #[error("{0} is no known version")]
    UnknownVersion(i16),
    /// A later version of agent-runtime compressed it.
    #[error("encoding {found} is newer than {known}, the newest that this version of agent-runtime reads")]
    NewerEncoding {
        /// The encoding that was found.
        found: i16,
        /// The newest encoding that this code reads.
        known: i16,
    },
    /// No encoding is below 0.
    #[error("{0} is no known encoding")]
    UnknownEncoding(i16),
    /// The payload would take more memory than any may.
    #[error("the payload states no size, or one above {MAX_LENGTH} bytes")]
    TooLong,
    /// The payload is damaged.
    #[error("the payload is no zstd frame")]
    Decompress(#[source] io::Error),
    /// The payload is damaged, or of another kind.
    #[error("the payload is not the JSON that it should be")]
    Json(#[source] serde_json::Error),
    /// The payload is damaged.
    #[error("the payload is no text")]
    Text(#[source] std::str::Utf8Error),
    /// The row states another number of messages.
    #[error("the segment says that it has {stated} messages and holds {found}")]
    MessageCount {
        /// The number in the row.
        stated: i64,
        /// The number in the payload.
        found: usize,
    },
}

impl DecodeError {
    /// Returns whether a later version of agent-runtime wrote the payload.
    pub(crate) fn is_of_later_version(&self) -> bool {
        matches!(self, Self::NewerVersion { .. } | Self::NewerEncoding { .. })
    }

    /// Returns the column at fault: the version or the encoding if that is unknown, and otherwise
    /// the payload.
    pub(crate) fn column(&self, payload: &'static str) -> &'static str {
        match self {
            Self::NewerVersion { .. } | Self::UnknownVersion(_) => "schema_version",
            Self::NewerEncoding { .. } | Self::UnknownEncoding(_) => "encoding",
            Self::MessageCount { .. } => "message_count",
            Self::TooLong | Self::Decompress(_) | Self::Json(_) | Self::Text(_) => payload,
        }
    }
}

/// Refuses versions that this code does not know.
pub(crate) fn check_version(found: i16, known: i16) -> Result<(), DecodeError> {
    match found {
        1.. if found > known => Err(DecodeError::NewerVersion { found, known }),
        1.. => Ok(()),
        _ => Err(DecodeError::UnknownVersion(found)),
    }
}

/// Returns the uncompressed bytes of a payload of a known version.
pub(crate) fn open_payload(stored: StoredPayload<'_>, known: i16) -> Result<Cow<'_, [u8]>, DecodeError> {
    check_version(stored.schema_version, known)?;
    match stored.encoding {
        RAW => Ok(Cow::Borrowed(stored.bytes)),
        ZSTD => open_frame(stored.bytes).map(Cow::Owned),
        found @ ..RAW => Err(DecodeError::UnknownEncoding(found)),
        found => Err(DecodeError::NewerEncoding {
            found,
            known: NEWEST_ENCODING,
        }),
    }
}

/// Decodes a payload of JSON of a known version.
pub(crate) fn decode<T: DeserializeOwned>(stored: StoredPayload<'_>, known: i16) -> Result<T, DecodeError> {
    let bytes = open_payload(stored, known)?;
    serde_json::from_slice(&bytes).map_err(DecodeError::Json)
}

/// Decodes a payload of text of a known version.
pub(crate) fn decode_text(stored: StoredPayload<'_>, known: i16) -> Result<String, DecodeError> {
    let bytes = open_payload(stored, known)?.into_owned();
    String::from_utf8(bytes).map_err(|error| DecodeError::Text(error.utf8_error()))
}

fn open_frame(bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
    let size = get_frame_content_size(bytes).ok().flatten();
    let size = size.and_then(|size| usize::try_from(size).ok());
    let size = size.filter(|size| *size <= MAX_LENGTH).ok_or(DecodeError::TooLong)?;
    decompress(bytes, size).map_err(DecodeError::Decompress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_come_back_whether_or_not_compression_pays() {
        let noise: Vec<u8> = blake3::Hasher::new().finalize_xof().fill_into(vec![0; 4096]);
        for (bytes, encoding) in [(b"[]".to_vec(), RAW), (noise, RAW), (b"\0\xff".repeat(3000), ZSTD)] {
            let payload = Payload::encode(1, bytes.clone()).unwrap();
            assert_eq!(payload.encoding, encoding);
            assert_eq!(open_payload(payload.as_stored(), 1).unwrap(), bytes);
        }
    }

    #[test]
    fn a_small_payload_compresses_by_the_dictionary() {
        let message = |role, text| {
            format!(
                r#"{{"id":"0190d9b4-5a00-7000-8000-000000000001","role":"{role}","content":[{{"type":"text","text":"{text}"}}]}}"#
            )
        };
        let messages = format!("[{},{}]", message("user", "Hello!"), message("assistant", "Good day!"));
        let payload = Payload::encode(1, messages.as_bytes().to_vec()).unwrap();
        assert!(payload.bytes.len() < messages.len() / 2, "{}", payload.bytes.len());
        assert_eq!(payload.as_stored().length(), messages.len() as u64);
    }

    #[test]
    fn a_length_is_bounded_even_if_a_damaged_payload_states_more() {
        for (stated, length) in [(0, 13), (12, 13), (1 << 20, 1 << 20), (u64::MAX - 2, MAX_LENGTH as u64)] {
            let bytes = [&[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..], &stated.to_le_bytes()].concat();
            let payload = StoredPayload {
                schema_version: 1,
                encoding: ZSTD,
                bytes: &bytes,
            };
            assert_eq!(payload.length(), length, "{stated}");
        }
    }

    #[test]
    fn damaged_payloads_are_errors() {
        let good = Payload::encode(1, b"agent ".repeat(1000)).unwrap();
        let cut = Payload {
            bytes: good.bytes[..good.bytes.len() - 3].to_vec(),
            ..good.clone()
        };
        let newer = Payload {
            schema_version: 2,
            ..good.clone()
        };
        let unversioned = Payload {
            schema_version: 0,
            ..good.clone()
        };
        let compressed_anew = Payload {
            encoding: ZSTD + 1,
            ..good.clone()
        };
        let unknown = Payload {
            encoding: -1,
            ..good.clone()
        };
        // A frame header that promises 2^40 bytes.
        let bomb = Payload {
            bytes: [
                &[0x28, 0xb5, 0x2f, 0xfd, 0xe0][..],
                &(1_u64 << 40).to_le_bytes(),
                &[1, 0, 0],
            ]
            .concat(),
            ..good.clone()
        };
        let columns = [
            (cut, "payload", false),
            (newer, "schema_version", true),
            (unversioned, "schema_version", false),
            (compressed_anew, "encoding", true),
            (unknown, "encoding", false),
            (bomb, "payload", false),
        ];
        for (payload, column, is_of_later_version) in columns {
            let error = open_payload(payload.as_stored(), 1).unwrap_err();
            let found = (error.column("payload"), error.is_of_later_version());
            assert_eq!(found, (column, is_of_later_version), "{error}");
            let next = open_payload(good.as_stored(), 1).unwrap();
            assert_eq!(next, b"agent ".repeat(1000), "after {error}");
        }
    }

    trait FillInto {
        fn fill_into(self, buffer: Vec<u8>) -> Vec<u8>;
    }

    impl FillInto for blake3::OutputReader {
        fn fill_into(mut self, mut buffer: Vec<u8>) -> Vec<u8> {
            self.fill(&mut buffer);
            buffer
        }
    }
}
