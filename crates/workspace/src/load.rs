//! Loads contents in batches and checks each against its hash.

use bytes::Bytes;

use super::bytes_codec::DecodeError;
use super::contents::{Content, ContentKind, Contents, ContentsError};
use tasks::off_thread::by_size;
use values::session::{Hash, hash_content, hash_directory};

/// The most contents of one call of `load` or `store`.
pub(super) const MAX_BATCH: usize = 256;
/// The most bytes of one call of `load` or `store`, unless a single content has more.
pub(super) const MAX_BATCH_BYTES: u64 = 8 << 20;

/// Loads and decodes directories or parts of directories. A decoder gets the facts that its parent
/// states of the directory. It runs off the async workers if there is much to decode.
pub(super) async fn load_directories<S, T>(
    contents: &dyn Contents,
    sources: Vec<(Hash, S)>,
    decode: fn(S, &[u8]) -> Result<T, DecodeError>,
) -> Result<Vec<T>, ContentsError>
where
    S: Send + 'static,
    T: Send + 'static,
{
    let mut decoded = Vec::with_capacity(sources.len());
    let mut sources = sources.into_iter().peekable();
    while sources.peek().is_some() {
        let (hashes, batch): (Vec<_>, Vec<_>) = sources.by_ref().take(MAX_BATCH).unzip();
        let loaded = contents.load(&hashes).await?;
        let bytes = total_bytes(&loaded);
        let work = move || {
            check_all(&hashes, &loaded, ContentKind::Directory)?;
            let decode = |(content, source): (&Content, S)| {
                decode(source, &content.bytes).map_err(|DecodeError| ContentsError::Corrupt { hash: content.hash })
            };
            loaded.iter().zip(batch).map(decode).collect::<Result<Vec<_>, _>>()
        };
        decoded.extend(by_size(contents.tenant(), bytes, work).await?);
    }
    Ok(decoded)
}

/// Loads contents of a kind whose sizes are known.
pub(super) async fn load_sized(
    contents: &dyn Contents,
    wanted: &[(Hash, u64)],
    kind: ContentKind,
) -> Result<Vec<Bytes>, ContentsError> {
    let mut all = Vec::with_capacity(wanted.len());
    let mut rest = wanted;
    while !rest.is_empty() {
        let (batch, after) = rest.split_at(batch_length(rest));
        rest = after;
        let hashes: Vec<_> = batch.iter().map(|(hash, _)| *hash).collect();
        let sizes: Vec<_> = batch.iter().map(|(_, size)| *size).collect();
        let loaded = contents.load(&hashes).await?;
        let bytes = total_bytes(&loaded);
        let work = move || {
            check_all(&hashes, &loaded, kind)?;
            let wrong = loaded
                .iter()
                .zip(sizes)
                .find(|(content, size)| content.bytes.len() as u64 != *size);
            match wrong {
                Some((content, _)) if kind == ContentKind::Bytes => Err(ContentsError::Corrupt { hash: content.hash }),
                _ => Ok(loaded),
            }
        };
        let loaded = by_size(contents.tenant(), bytes, work).await?;
        all.extend(loaded.into_iter().map(|content| content.bytes));
    }
    Ok(all)
}

/// Returns how many of the contents fit into one batch; at least one.
fn batch_length(wanted: &[(Hash, u64)]) -> usize {
    let mut bytes = 0_u64;
    let fits = |(_, size): &&(Hash, u64)| {
        bytes = bytes.saturating_add(*size);
        bytes <= MAX_BATCH_BYTES
    };
    wanted.iter().take(MAX_BATCH).take_while(fits).count().max(1)
}

fn total_bytes(contents: &[Content]) -> u64 {
    contents.iter().map(|content| content.bytes.len() as u64).sum()
}

/// Checks that the contents match the hashes, in order.
fn check_all(hashes: &[Hash], loaded: &[Content], kind: ContentKind) -> Result<(), ContentsError> {
    for (index, hash) in hashes.iter().enumerate() {
        let content = loaded.get(index).ok_or(ContentsError::Missing { hash: *hash })?;
        if content.hash != *hash || content.kind != kind || !has_its_hash(content) {
            return Err(ContentsError::Corrupt { hash: *hash });
        }
    }
    Ok(())
}

/// Returns whether the bytes have the hash. The bytes of a list of chunks say nothing about its
/// hash. It is checked with the file.
fn has_its_hash(content: &Content) -> bool {
    match content.kind {
        ContentKind::Bytes => hash_content(&content.bytes) == content.hash,
        ContentKind::Directory => hash_directory(&content.bytes) == content.hash,
        ContentKind::Chunks => true,
    }
}
