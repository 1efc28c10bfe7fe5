//! Trees of files to store. Directories are encoded here by hand, so that the stored form is
//! checked as well.

use agent_runtime::session::{Hash, hash_content, hash_directory};
use agent_runtime::workspace::{Content, ContentKind};
use bytes::Bytes;

/// What a directory of a test has under a name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node {
    /// A file of that many bytes.
    File(Hash, usize),
    Directory(Hash),
}

/// A content of the bytes of a file.
pub(crate) fn file(bytes: impl Into<Bytes>) -> Content {
    let bytes = bytes.into();
    Content {
        hash: hash_content(&bytes),
        kind: ContentKind::Bytes,
        bytes,
    }
}

/// A large file: its chunks, and their list under the hash of all bytes.
pub(crate) fn chunked(chunks: &[Content]) -> Content {
    let mut list = vec![1];
    let mut hasher = blake3::Hasher::new();
    for chunk in chunks {
        list.extend_from_slice(chunk.hash.as_bytes());
        push_number(&mut list, chunk.bytes.len());
        hasher.update(&chunk.bytes);
    }
    Content {
        hash: Hash::from(*hasher.finalize().as_bytes()),
        kind: ContentKind::Chunks,
        bytes: list.into(),
    }
}

/// Returns the entry of a stored file.
pub(crate) fn entry(content: &Content) -> Node {
    Node::File(content.hash, content.bytes.len())
}

/// A small directory. The names must be sorted.
pub(crate) fn directory(entries: &[(&str, Node)]) -> Content {
    let mut encoded = vec![1, 0];
    for (name, node) in entries {
        encoded.push(if matches!(node, Node::File(..)) { 0 } else { 3 });
        push_name(&mut encoded, name);
        match node {
            Node::File(hash, size) => {
                encoded.extend_from_slice(hash.as_bytes());
                push_number(&mut encoded, *size);
            }
            Node::Directory(hash) => {
                encoded.extend_from_slice(hash.as_bytes());
                encoded.extend_from_slice(&[0; 3]);
            }
        }
    }
    stored_directory(encoded)
}

/// A large directory of parts, each with its first name.
pub(crate) fn parts(parts: &[(&str, Hash)]) -> Content {
    let mut encoded = vec![1, 1];
    for (first, hash) in parts {
        push_name(&mut encoded, first);
        encoded.push(1);
        encoded.extend_from_slice(hash.as_bytes());
        encoded.extend_from_slice(&[0; 3]);
    }
    stored_directory(encoded)
}

fn stored_directory(encoded: Vec<u8>) -> Content {
    Content {
        hash: hash_directory(&encoded),
        kind: ContentKind::Directory,
        bytes: encoded.into(),
    }
}

fn push_name(encoded: &mut Vec<u8>, name: &str) {
    push_number(encoded, name.len());
    encoded.extend_from_slice(name.as_bytes());
}

fn push_number(encoded: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        encoded.push(u8::try_from(number & 0x7f).unwrap() | 0x80);
        number >>= 7;
    }
    encoded.push(u8::try_from(number).unwrap());
}
