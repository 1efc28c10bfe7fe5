//! Confirms that a tree is stored as a whole and sound, before a session from elsewhere refers to
//! it.

use std::collections::HashMap;

use super::chunks::{chunks_of, is_whole};
use super::contents::{ContentKind, Contents, ContentsError, StoredContent};
use super::error::TreeError;
use super::load::MAX_BATCH;
use super::shapes::{NewContents, Shapes};
use super::tree::Tree;
use values::session::Hash;

impl Tree {
    /// Checks that a stored tree is valid in this workspace, and that all of its contents are
    /// stored. They all count as written now, so no sweep removes them before a session that is
    /// committed soon refers to them. Reads directories and lists of chunks, but no file.
    pub async fn confirm(&self) -> Result<(), TreeError> {
        let Some(root) = self.hash() else { return Ok(()) };
        let contents = self.contents();
        let NewContents { directories, files } = Shapes::new(contents, self.limits()).check_new(root).await?;
        let directories: Vec<_> = directories.into_iter().map(|hash| (hash, None)).collect();
        confirm_all(contents, ContentKind::Directory, &directories).await?;
        let (whole, large): (Vec<_>, Vec<_>) = files.into_iter().partition(|(_, size)| is_whole(*size));
        confirm_all(contents, ContentKind::Bytes, &sized(whole)).await?;
        let lists: Vec<_> = large.iter().map(|(hash, _)| (*hash, None)).collect();
        confirm_all(contents, ContentKind::Chunks, &lists).await?;
        for (hash, size) in large {
            let chunks = chunks_of(contents, hash, size).await?;
            confirm_all(contents, ContentKind::Bytes, &sized(chunks)).await?;
        }
        Ok(())
    }
}

/// Checks that contents are stored, with a kind and, where they are known, these sizes.
async fn confirm_all(
    contents: &dyn Contents,
    kind: ContentKind,
    wanted: &[(Hash, Option<u64>)],
) -> Result<(), ContentsError> {
    for batch in wanted.chunks(MAX_BATCH) {
        let hashes: Vec<_> = batch.iter().map(|(hash, _)| *hash).collect();
        let stored: HashMap<Hash, StoredContent> = contents.renew(&hashes).await?;
        for (hash, size) in batch {
            let found = stored.get(hash).ok_or(ContentsError::Missing { hash: *hash })?;
            if found.kind != kind || size.is_some_and(|size| size != found.size) {
                return Err(ContentsError::Corrupt { hash: *hash });
            }
        }
    }
    Ok(())
}

fn sized(files: Vec<(Hash, u64)>) -> Vec<(Hash, Option<u64>)> {
    files.into_iter().map(|(hash, size)| (hash, Some(size))).collect()
}
