//! Rows of `contents`. The payload that is read is borrowed, since one statement reads many rows.

use bytes::Bytes;
use uuid::Uuid;

use super::{PayloadRow, RowName, row, written_row};
use crate::codec::{CONTENT_VERSION, EncodeError, Payload, open_payload};
use crate::contents::MAX_CONTENT_BYTES;
use crate::error::StoreError;
use values::session::{Hash, hash_content};
use workspace::{Content, ContentKind, StoredContent};

/// Added to the encoding of a content whose payload is in an object store. The row has the id of
/// the object in place of the payload.
const IN_OBJECT: i16 = 64;

const BYTES: i16 = 0;
const CHUNKS: i16 = 1;
const DIRECTORY: i16 = 2;

/// Why the columns of a content contradict each other.
#[derive(Debug, thiserror::Error)]
enum ContentFault {
    #[error("{0} is no known kind")]
    Kind(i16),
    #[error("the content has {found} bytes, and its row states {stated}")]
    Size { stated: i64, found: usize },
    #[error("the content has more than {MAX_CONTENT_BYTES} bytes")]
    TooLarge,
    #[error("the id of the object has {0} bytes")]
    ObjectId(usize),
    #[error("the object store has no object {0}")]
    Lost(Uuid),
    #[error("the object {0} has other bytes than the content")]
    Unsound(Uuid),
}

written_row! {
    /// A content to write.
    #[derive(Debug)]
    pub(crate) struct NewContentRow {
        pub(crate) hash: Hash,
        pub(crate) kind: i16,
        pub(crate) size: i64,
        pub(crate) schema_version: i16,
        pub(crate) encoding: i16,
        pub(crate) payload: Vec<u8>,
    }
}

impl NewContentRow {
    /// Encodes a content.
    pub(crate) fn new(content: &Content) -> Result<Self, EncodeError> {
        let payload = Payload::encode(CONTENT_VERSION, content.bytes.to_vec())?;
        Ok(Self {
            hash: content.hash,
            kind: match content.kind {
                ContentKind::Bytes => BYTES,
                ContentKind::Chunks => CHUNKS,
                ContentKind::Directory => DIRECTORY,
            },
            size: super::stored_count(content.bytes.len() as u64),
            schema_version: payload.schema_version,
            encoding: payload.encoding,
            payload: payload.bytes,
        })
    }
}

impl NewContentRow {
    /// Returns whether it is a file or a chunk. Only those may be in an object store.
    pub(crate) fn is_bytes(&self) -> bool {
        self.kind == BYTES
    }

    /// Takes the payload out of the row, and names the object that has it.
    pub(crate) fn take_payload(&mut self, object: Uuid) -> Vec<u8> {
        self.encoding += IN_OBJECT;
        std::mem::replace(&mut self.payload, object.as_bytes().to_vec())
    }
}

/// A row whose payload is in an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectRow {
    /// The hash of the content.
    pub(crate) hash: Hash,
    /// The id of the object.
    pub(crate) object: Uuid,
    kind: i16,
    size: i64,
    schema_version: i16,
    encoding: i16,
}

impl ObjectRow {
    /// Returns the bytes of the content, uncompressed.
    pub(crate) fn length(&self) -> u64 {
        u64::try_from(self.size).unwrap_or(0)
    }

    /// Returns the row as it would be with its payload. Checks the hash.
    pub(crate) fn with_payload<'r>(&'r self, payload: &'r [u8]) -> Result<ContentRow<'r>, StoreError> {
        let row = ContentRow {
            hash: self.hash.as_bytes().as_slice(),
            kind: self.kind,
            size: self.size,
            payload: PayloadRow::new(self.schema_version, self.encoding, payload),
        };
        match row.decode() {
            Ok(content) if hash_content(&content.bytes) == self.hash => Ok(row),
            _ => Err(self.corrupt(ContentFault::Unsound(self.object))),
        }
    }

    /// Returns the error of a row whose object does not exist.
    pub(crate) fn lost(&self) -> StoreError {
        self.corrupt(ContentFault::Lost(self.object))
    }

    fn corrupt(&self, fault: ContentFault) -> StoreError {
        RowName::new("contents", &self.hash).corrupt("payload", fault)
    }
}

row! {
    /// A stored content.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct ContentRow<'r> {
        hash: &'r [u8],
        kind: i16,
        size: i64,
        ;
        payload: PayloadRow<&'r [u8]>,
    }
}

row! {
    /// A stored content without its payload.
    #[derive(Debug)]
    pub(crate) struct RenewedContentRow {
        pub(crate) hash: Vec<u8>,
        kind: i16,
        size: i64,
    }
}

impl RenewedContentRow {
    /// Returns the hash, and the kind of the content.
    pub(crate) fn decode(&self) -> Result<(Hash, StoredContent), StoreError> {
        let hash = RowName::new("contents", &"?").hash("hash", &self.hash)?;
        let name = RowName::new("contents", &hash);
        let kind = content_kind(self.kind).ok_or_else(|| name.corrupt("kind", ContentFault::Kind(self.kind)))?;
        let size = u64::try_from(self.size).map_err(|error| name.corrupt("size", error))?;
        Ok((hash, StoredContent { kind, size }))
    }
}

impl ContentRow<'_> {
    /// Returns the hash that addresses the content.
    pub(crate) fn hash(&self) -> Result<Hash, StoreError> {
        RowName::new("contents", &"?").hash("hash", self.hash)
    }

    /// Returns the row without its payload if that is in an object.
    pub(crate) fn in_object(&self) -> Result<Option<ObjectRow>, StoreError> {
        let stored = self.payload.stored();
        if stored.encoding < IN_OBJECT {
            return Ok(None);
        }
        let hash = self.hash()?;
        let object = Uuid::from_slice(stored.bytes).map_err(|_| {
            let fault = ContentFault::ObjectId(stored.bytes.len());
            RowName::new("contents", &hash).corrupt("payload", fault)
        })?;
        Ok(Some(ObjectRow {
            hash,
            object,
            kind: self.kind,
            size: self.size,
            schema_version: stored.schema_version,
            encoding: stored.encoding - IN_OBJECT,
        }))
    }

    /// Decodes the content. Does not check its hash.
    pub(crate) fn decode(&self) -> Result<Content, StoreError> {
        let hash = self.hash()?;
        let name = RowName::new("contents", &hash);
        let kind = content_kind(self.kind).ok_or_else(|| name.corrupt("kind", ContentFault::Kind(self.kind)))?;
        let stored = self.payload.stored();
        if stored.length() > MAX_CONTENT_BYTES as u64 {
            return Err(name.corrupt("payload", ContentFault::TooLarge));
        }
        let bytes = open_payload(stored, CONTENT_VERSION).map_err(|error| name.undecodable("payload", error))?;
        if i64::try_from(bytes.len()) != Ok(self.size) {
            let (stated, found) = (self.size, bytes.len());
            return Err(name.corrupt("size", ContentFault::Size { stated, found }));
        }
        Ok(Content {
            hash,
            kind,
            bytes: Bytes::from(bytes.into_owned()),
        })
    }
}

/// Returns whether contents of a kind may refer to others. A later version may have more kinds.
pub(crate) fn is_node(kind: i16) -> bool {
    kind != BYTES
}

/// Returns the kind of a content by its number in the column.
fn content_kind(stored: i16) -> Option<ContentKind> {
    match stored {
        BYTES => Some(ContentKind::Bytes),
        CHUNKS => Some(ContentKind::Chunks),
        DIRECTORY => Some(ContentKind::Directory),
        _ => None,
    }
}
