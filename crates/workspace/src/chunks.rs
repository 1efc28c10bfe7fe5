//! Files as contents: a small file is one, and a large file is a list of chunks.
//!
//! The bytes themselves decide where they are cut into chunks (`fastcdc`). After a change in the
//! middle of a large file, most chunks are the old ones. The list of the chunks is stored under the
//! hash of the whole file.

use bytes::{Bytes, BytesMut};
use fastcdc::v2020::FastCDC;

use super::bytes_codec::{DecodeError, Reader, write_varint};
use super::contents::{Content, ContentKind, Contents, ContentsError};
use super::limits::MAX_FILE_BYTES;
use super::load::load_sized;
use tasks::off_thread::by_size;
use values::session::{Hash, hash_content};

/// Larger files are stored in chunks. No chunk is larger.
const MAX_CHUNK: usize = 1 << 20;
const AVERAGE_CHUNK: usize = 256 << 10;
const MIN_CHUNK: usize = 64 << 10;
const VERSION: u8 = 1;

/// Returns the contents that store a file: the list of chunks comes after the chunks.
pub(super) fn contents_of_file(hash: Hash, bytes: Bytes) -> Vec<Content> {
    if bytes.len() <= MAX_CHUNK {
        return vec![content(hash, bytes)];
    }
    let mut list = vec![VERSION];
    let mut contents = Vec::new();
    for chunk in FastCDC::new(&bytes, MIN_CHUNK, AVERAGE_CHUNK, MAX_CHUNK) {
        let chunk = bytes.slice(chunk.offset..chunk.offset + chunk.length);
        let hash = hash_content(&chunk);
        list.extend_from_slice(hash.as_bytes());
        write_varint(&mut list, chunk.len() as u64);
        contents.push(content(hash, chunk));
    }
    contents.push(Content {
        hash,
        kind: ContentKind::Chunks,
        bytes: Bytes::from(list),
    });
    contents
}

fn content(hash: Hash, bytes: Bytes) -> Content {
    Content {
        hash,
        kind: ContentKind::Bytes,
        bytes,
    }
}

/// Returns whether a file of that size is stored as one content.
pub(super) fn is_whole(size: u64) -> bool {
    size <= MAX_CHUNK as u64
}

/// Loads a file and checks it against its hash and size.
pub(super) async fn read_file(contents: &dyn Contents, hash: Hash, size: u64) -> Result<Bytes, ContentsError> {
    if is_whole(size) {
        return load_one(contents, hash, size, ContentKind::Bytes).await;
    }
    let chunks = chunks_of(contents, hash, size).await?;
    let chunks = load_sized(contents, &chunks, ContentKind::Bytes).await?;
    let work = move || {
        let mut file = BytesMut::new();
        for chunk in chunks {
            file.extend_from_slice(&chunk);
        }
        (hash_content(&file) == hash).then(|| file.freeze())
    };
    let file = by_size(contents.tenant(), size, work).await;
    file.ok_or(ContentsError::Corrupt { hash })
}

/// Loads the list of the chunks of a file of that size.
pub(super) async fn chunks_of(
    contents: &dyn Contents,
    hash: Hash,
    size: u64,
) -> Result<Vec<(Hash, u64)>, ContentsError> {
    let list = load_one(contents, hash, size, ContentKind::Chunks).await?;
    decode_list(&list, size).map_err(|DecodeError| ContentsError::Corrupt { hash })
}

async fn load_one(contents: &dyn Contents, hash: Hash, size: u64, kind: ContentKind) -> Result<Bytes, ContentsError> {
    let loaded = load_sized(contents, &[(hash, size)], kind).await?;
    loaded.into_iter().next().ok_or(ContentsError::Missing { hash })
}

/// Loads files, in the order asked. Files of a single content are loaded together.
pub(super) async fn read_files(contents: &dyn Contents, files: &[(Hash, u64)]) -> Result<Vec<Bytes>, ContentsError> {
    let whole: Vec<_> = files.iter().copied().filter(|(_, size)| is_whole(*size)).collect();
    let mut whole = load_sized(contents, &whole, ContentKind::Bytes).await?.into_iter();
    let mut read = Vec::with_capacity(files.len());
    for (hash, size) in files {
        read.push(if is_whole(*size) {
            whole.next().ok_or(ContentsError::Missing { hash: *hash })?
        } else {
            read_file(contents, *hash, *size).await?
        });
    }
    Ok(read)
}

/// Decodes a list of the chunks of a file of that size.
fn decode_list(list: &[u8], size: u64) -> Result<Vec<(Hash, u64)>, DecodeError> {
    match decode_chunks(list)? {
        (chunks, total) if total == size => Ok(chunks),
        _ => Err(DecodeError),
    }
}

/// Decodes a list of chunks. Returns them with the size of the file.
pub(super) fn decode_chunks(list: &[u8]) -> Result<(Vec<(Hash, u64)>, u64), DecodeError> {
    let mut reader = Reader::new(list);
    if reader.byte()? != VERSION {
        return Err(DecodeError);
    }
    let (mut chunks, mut total) = (Vec::new(), 0_u64);
    while !reader.is_empty() {
        let (hash, length) = (reader.hash()?, reader.varint()?);
        if !(1..=MAX_CHUNK as u64).contains(&length) {
            return Err(DecodeError);
        }
        total += length;
        if total > MAX_FILE_BYTES {
            return Err(DecodeError);
        }
        chunks.push((hash, length));
    }
    Ok((chunks, total))
}
