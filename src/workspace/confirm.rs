//! Confirms that a tree is stored as a whole, before a session from elsewhere refers to it.

use std::collections::HashSet;

use super::chunks::is_whole;
use super::contents::{Contents, ContentsError};
use super::error::TreeError;
use super::limits::MAX_FILES;
use super::links::{Link, content_links};
use super::load::MAX_BATCH;
use super::tree::Tree;
use crate::session::Hash;

impl Tree {
    /// Checks that every content of a stored tree is there. They all count as written now, so no
    /// sweep removes them before a session that is committed soon refers to them. Reads directories
    /// and lists of chunks, but no file.
    pub async fn confirm(&self) -> Result<(), TreeError> {
        let Some(root) = self.hash() else { return Ok(()) };
        let (contents, _) = self.source();
        let mut seen = HashSet::from([root]);
        // Whether a content refers to others, so that it must be read.
        let mut waiting = vec![(root, true)];
        while !waiting.is_empty() {
            let rest = waiting.len().saturating_sub(MAX_BATCH);
            let batch = waiting.split_off(rest);
            let hashes: Vec<_> = batch.iter().map(|(hash, _)| *hash).collect();
            if let Some(hash) = contents.missing(&hashes).await?.first() {
                return Err(ContentsError::Missing { hash: *hash }.into());
            }
            let read: Vec<_> = batch
                .iter()
                .filter(|(_, refers)| *refers)
                .map(|(hash, _)| *hash)
                .collect();
            for (hash, refers) in referred_to(&*contents, &read).await? {
                if seen.len() as u64 > MAX_FILES {
                    return Err(TreeError::TooManyFiles { limit: MAX_FILES });
                }
                if seen.insert(hash) {
                    waiting.push((hash, refers));
                }
            }
        }
        Ok(())
    }
}

/// Returns what contents refer to, and whether that refers to something in turn.
async fn referred_to(contents: &dyn Contents, hashes: &[Hash]) -> Result<Vec<(Hash, bool)>, ContentsError> {
    if hashes.is_empty() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for content in contents.load(hashes).await? {
        let links = content_links(content.kind, &content.bytes);
        let links = links.map_err(|_| ContentsError::Corrupt { hash: content.hash })?;
        found.extend(links.into_iter().map(|link| {
            let refers = match link {
                Link::Part { .. } | Link::Directory { .. } => true,
                Link::File { size, .. } => !is_whole(size),
                Link::Chunk { .. } => false,
            };
            (link.hash(), refers)
        }));
    }
    Ok(found)
}
