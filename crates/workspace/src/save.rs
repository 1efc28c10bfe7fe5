//! Saves a tree: stores its new contents, files before the directories that contain them.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;

use super::chunks::contents_of_file;
use super::contents::{Content, ContentKind, Contents, ContentsError};
use super::directory::{EntriesEncoder, StoredEntry, encode_parts};
use super::error::TreeError;
use super::load::{MAX_BATCH, MAX_BATCH_BYTES};
use super::node::{File, Index, Node, Part, PartState, Slot};
use super::tree::Tree;
use super::unsaved::{unsaved_entries, unsaved_files};
use tasks::off_thread::by_size;
use values::session::{Hash, hash_directory};

/// About how many bytes an entry of a directory is encoded as.
const ENTRY_BYTES: u64 = 64;

impl Tree {
    /// Stores the new contents of the tree. Returns the same tree with everything stored, and
    /// without bytes of files in memory.
    ///
    /// Stores at most 256 contents and 8 MiB at once, unless a single content is larger. A failed
    /// save leaves contents behind that nothing refers to. It can be repeated.
    pub async fn save(&self) -> Result<Self, TreeError> {
        let root = Arc::clone(self.root());
        if root.unsaved().is_none_or(Index::is_empty) {
            return Ok(self.clone());
        }
        let tenant = self.contents().tenant();
        let mut writer = Writer::new(self.contents());
        for (hash, bytes) in unsaved_files(&root) {
            if writer.written.contains(&hash) {
                continue;
            }
            let size = bytes.len() as u64;
            let contents = by_size(tenant, size, move || contents_of_file(hash, bytes)).await;
            writer.write_all(contents).await?;
        }
        let size = ENTRY_BYTES * unsaved_entries(&root);
        let (root, directories) = by_size(tenant, size, move || {
            let mut directories = Vec::new();
            let (_, root) = saved(&root, &mut directories);
            (root, directories)
        })
        .await;
        writer.write_all(directories).await?;
        writer.flush().await?;
        Ok(self.with_root(root))
    }
}

/// Encodes the unsaved parts of a directory, the lowest directories first. Returns its hash, and
/// the directory as it is once all that is stored.
fn saved(node: &Arc<Node>, contents: &mut Vec<Content>) -> (Hash, Arc<Node>) {
    let index = match &**node {
        Node::Stored(stored) => return (stored.hash, Arc::clone(node)),
        Node::Unsaved(index) => index,
    };
    let parts: Vec<_> = index.parts().iter().map(|part| saved_part(part, contents)).collect();
    let hash = match &parts[..] {
        [] => push(EntriesEncoder::new().finish(), contents),
        [(hash, _)] => *hash,
        parts => push(
            encode_parts(parts.iter().map(|(hash, part)| part.to_stored(*hash))),
            contents,
        ),
    };
    let parts = parts.into_iter().map(|(_, part)| part).collect();
    (hash, Node::saved(hash, Index::from_parts(parts)))
}

fn saved_part(part: &Arc<Part>, contents: &mut Vec<Content>) -> (Hash, Arc<Part>) {
    let items = match part.state() {
        PartState::Stored { hash, .. } => return (*hash, Arc::clone(part)),
        PartState::Unsaved { items, .. } => items,
    };
    let mut encoder = EntriesEncoder::new();
    let mut saved_items = Vec::with_capacity(items.len());
    for (name, slot) in items {
        let (entry, saved_slot) = saved_slot(slot, contents);
        encoder.push(name, entry);
        saved_items.push((Arc::clone(name), saved_slot));
    }
    let hash = push(encoder.finish(), contents);
    (hash, part.saved(hash, saved_items))
}

fn saved_slot<'a>(slot: &'a Slot, contents: &mut Vec<Content>) -> (StoredEntry<'a>, Slot) {
    match slot {
        Slot::File(file) => {
            let File {
                hash,
                size,
                is_executable,
                modified,
                ..
            } = *file;
            let entry = StoredEntry::File {
                hash,
                size,
                is_executable,
                modified,
            };
            (entry, Slot::from_stored(entry))
        }
        Slot::Symlink(target) => (StoredEntry::Symlink { target }, slot.clone()),
        Slot::Directory(node) => {
            let (hash, node) = saved(node, contents);
            let totals = node.known_totals();
            (StoredEntry::Directory { hash, totals }, Slot::Directory(node))
        }
    }
}

fn push(encoded: Vec<u8>, contents: &mut Vec<Content>) -> Hash {
    let hash = hash_directory(&encoded);
    contents.push(Content {
        hash,
        kind: ContentKind::Directory,
        bytes: Bytes::from(encoded),
    });
    hash
}

/// Stores contents in batches, each content once.
pub(super) struct Writer<'a> {
    contents: &'a dyn Contents,
    written: HashSet<Hash>,
    batch: Vec<Content>,
    bytes: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn new(contents: &'a dyn Contents) -> Self {
        Self {
            contents,
            written: HashSet::new(),
            batch: Vec::new(),
            bytes: 0,
        }
    }

    pub(super) async fn write_all(&mut self, contents: Vec<Content>) -> Result<(), ContentsError> {
        for content in contents {
            if !self.written.insert(content.hash) {
                continue;
            }
            let bytes = content.bytes.len() as u64;
            if self.batch.len() == MAX_BATCH || self.bytes + bytes > MAX_BATCH_BYTES {
                self.flush().await?;
            }
            self.bytes += bytes;
            self.batch.push(content);
        }
        Ok(())
    }

    pub(super) async fn flush(&mut self) -> Result<(), ContentsError> {
        self.bytes = 0;
        if self.batch.is_empty() {
            return Ok(());
        }
        self.contents.store(std::mem::take(&mut self.batch)).await
    }
}
