//! Inspects contents of workspaces for verification: whether each matches its hash, and its
//! references. Contains no SQL: the engines pass in their rows.

use std::collections::HashMap;
use std::error::Error as _;

use bytes::Bytes;

use super::contents::MAX_BATCH_BYTES;
use super::error::StoreError;
use super::rows::ContentRow;
use values::session::{Hash, hash_content, hash_directory};
use workspace::{Content, ContentKind, Link, content_links};

/// The kind that a content must have, by the content that refers to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Role {
    /// A directory, or a part of one.
    Directory,
    /// A file of that many bytes.
    File(u64),
}

/// A content to inspect.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) hash: Hash,
    pub(crate) role: Role,
    /// The path in the workspace; empty for the root.
    pub(crate) path: String,
}

/// A chunk of a large file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) hash: Hash,
    pub(crate) size: u64,
}

/// The kind of a content, with its links.
#[derive(Debug)]
pub(crate) enum Inspected {
    /// A file or a chunk of that many bytes, which match its hash.
    Bytes(u64),
    /// A list of chunks. The hash of their file is to be checked with the chunks.
    Chunks(Vec<Chunk>),
    /// A directory that matches its hash, with its entries.
    Directory(Vec<Below>),
    /// The reason why the content is not sound.
    Fault(String),
}

/// A link of a directory.
#[derive(Debug)]
pub(crate) struct Below {
    hash: Hash,
    role: Role,
    /// The name; `None` for a part of the directory.
    name: Option<String>,
}

impl Below {
    /// Returns the contents to inspect, given the path of the directory.
    pub(crate) fn at(&self, directory: &str) -> Wanted {
        let path = match &self.name {
            None => directory.to_owned(),
            Some(name) if directory.is_empty() => name.clone(),
            Some(name) => format!("{directory}/{name}"),
        };
        Wanted {
            hash: self.hash,
            role: self.role,
            path,
        }
    }
}

/// Inspected contents, by their hash.
#[derive(Debug, Default)]
pub(crate) struct ContentCheck(HashMap<Hash, Inspected>);

impl ContentCheck {
    /// Inspects a content.
    pub(crate) fn push(&mut self, row: &ContentRow<'_>) -> Result<(), StoreError> {
        let hash = row.hash()?;
        let inspected = match row.decode() {
            Ok(content) => inspect(&content),
            Err(error) => fault(&error),
        };
        self.0.insert(hash, inspected);
        Ok(())
    }

    /// Adds a content that can't be read.
    pub(crate) fn push_fault(&mut self, hash: Hash, error: &StoreError) {
        self.0.insert(hash, fault(error));
    }

    /// Returns the findings about a content; `None` if it is not stored.
    pub(crate) fn get(&self, hash: Hash) -> Option<&Inspected> {
        self.0.get(&hash)
    }
}

fn fault(error: &StoreError) -> Inspected {
    Inspected::Fault(error.source().map_or_else(|| error.to_string(), ToString::to_string))
}

fn inspect(content: &Content) -> Inspected {
    let computed = match content.kind {
        ContentKind::Bytes => Some(hash_content(&content.bytes)),
        ContentKind::Directory => Some(hash_directory(&content.bytes)),
        ContentKind::Chunks => None,
    };
    if computed.is_some_and(|computed| computed != content.hash) {
        return Inspected::Fault("the bytes differ from their hash".to_owned());
    }
    let links = match content_links(content.kind, &content.bytes) {
        Ok(links) => links,
        Err(error) => return Inspected::Fault(error.to_string()),
    };
    match content.kind {
        ContentKind::Bytes => Inspected::Bytes(content.bytes.len() as u64),
        ContentKind::Chunks => Inspected::Chunks(links.iter().filter_map(chunk_of).collect()),
        ContentKind::Directory => Inspected::Directory(links.iter().filter_map(below_of).collect()),
    }
}

fn chunk_of(link: &Link<'_>) -> Option<Chunk> {
    match *link {
        Link::Chunk { hash, size } => Some(Chunk { hash, size }),
        Link::Part { .. } | Link::Directory { .. } | Link::File { .. } => None,
    }
}

fn below_of(link: &Link<'_>) -> Option<Below> {
    let (role, name) = match *link {
        Link::Part { .. } => (Role::Directory, None),
        Link::Directory { name, .. } => (Role::Directory, Some(name.to_owned())),
        Link::File { name, size, .. } => (Role::File(size), Some(name.to_owned())),
        Link::Chunk { .. } => return None,
    };
    let hash = link.hash();
    Some(Below { hash, role, name })
}

/// Some chunks of a file, in any order.
#[derive(Debug, Default)]
pub(crate) struct LoadedChunks {
    chunks: HashMap<Hash, Bytes>,
    bytes: usize,
}

impl LoadedChunks {
    /// Adds a chunk if it can be decoded. Leaves it out if there would be more bytes than a batch
    /// has: then a chunk is larger than its file states.
    pub(crate) fn push(&mut self, row: &ContentRow<'_>) {
        if let Ok(content) = row.decode()
            && content.kind == ContentKind::Bytes
            && self.bytes + content.bytes.len() <= MAX_BATCH_BYTES
        {
            self.bytes += content.bytes.len();
            self.chunks.insert(content.hash, content.bytes);
        }
    }

    /// Hashes the chunks in their order. Fails with the first one that is missing or unsound.
    pub(crate) fn hash_into(&self, hasher: &mut blake3::Hasher, chunks: &[Chunk]) -> Result<(), Hash> {
        for chunk in chunks {
            let bytes = self.chunks.get(&chunk.hash).ok_or(chunk.hash)?;
            if bytes.len() as u64 != chunk.size || hash_content(bytes) != chunk.hash {
                return Err(chunk.hash);
            }
            hasher.update(bytes);
        }
        Ok(())
    }
}
