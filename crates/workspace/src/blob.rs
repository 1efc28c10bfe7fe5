//! Files by their hash, without a tree: stored ahead of the tree that will have them.

use bytes::Bytes;

use super::bytes_codec::DecodeError;
use super::chunks::{contents_of_file, decode_chunks};
use super::contents::{ContentKind, Contents, ContentsError};
use super::save::Writer;
use tasks::off_thread::by_size;
use values::session::{Hash, hash_content};

/// Stores the contents of a file. The caller has checked that the bytes have the hash.
pub async fn store_file(contents: &dyn Contents, hash: Hash, bytes: Bytes) -> Result<(), ContentsError> {
    let size = bytes.len() as u64;
    let parts = by_size(contents.tenant(), size, move || contents_of_file(hash, bytes)).await;
    let mut writer = Writer::new(contents);
    writer.write_all(parts).await?;
    writer.flush().await
}

/// Returns the size of a stored file; `None` if no file with the hash is stored completely. Renews
/// the time until which its contents may stay unreferenced.
pub async fn find_file(contents: &dyn Contents, hash: Hash) -> Result<Option<u64>, ContentsError> {
    if contents.renew(&[hash]).await?.is_empty() {
        return Ok(None);
    }
    let loaded = match contents.load(&[hash]).await {
        Err(ContentsError::Missing { .. }) => return Ok(None),
        loaded => loaded?,
    };
    let Some(content) = loaded.into_iter().next() else {
        return Ok(None);
    };
    match content.kind {
        ContentKind::Directory => Ok(None),
        ContentKind::Bytes if hash_content(&content.bytes) == hash => Ok(Some(content.bytes.len() as u64)),
        ContentKind::Bytes => Err(ContentsError::Corrupt { hash }),
        ContentKind::Chunks => {
            let chunks = decode_chunks(&content.bytes);
            let (chunks, size) = chunks.map_err(|DecodeError| ContentsError::Corrupt { hash })?;
            let hashes: Vec<_> = chunks.into_iter().map(|(hash, _)| hash).collect();
            let stored = contents.renew(&hashes).await?;
            let is_complete = hashes.iter().all(|hash| stored.contains_key(hash));
            Ok(is_complete.then_some(size))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InMemoryContents;

    fn bytes(length: u32) -> Bytes {
        (0..length)
            .flat_map(|n| n.wrapping_mul(2_654_435_761).to_le_bytes())
            .collect::<Vec<_>>()
            .into()
    }

    #[tokio::test]
    async fn a_file_is_found_by_its_hash_while_all_of_it_is_stored() {
        let contents = InMemoryContents::default();
        for length in [0, 1, 1 << 18, 3 << 18] {
            let file = bytes(length);
            let (hash, size) = (hash_content(&file), file.len() as u64);
            assert_eq!(find_file(&contents, hash).await.unwrap(), None);
            store_file(&contents, hash, file).await.unwrap();
            assert_eq!(find_file(&contents, hash).await.unwrap(), Some(size));
        }
    }

    #[tokio::test]
    async fn a_large_file_without_one_of_its_chunks_is_not_there() {
        let contents = InMemoryContents::default();
        let file = bytes(3 << 18);
        let hash = hash_content(&file);
        store_file(&contents, hash, file).await.unwrap();
        let chunk = contents.all().into_iter().find(|content| content.hash != hash).unwrap();
        contents.remove(&chunk.hash);
        assert_eq!(find_file(&contents, hash).await.unwrap(), None);
    }
}
