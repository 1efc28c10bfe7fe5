//! The references of a stored content. The store follows trees by them.

use super::bytes_codec::DecodeError;
use super::chunks::decode_chunks;
use super::contents::ContentKind;
use super::directory::{Listing, StoredEntry, decode};
use values::session::Hash;

/// A reference from a content to another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link<'a> {
    /// A part of a large directory.
    Part { hash: Hash },
    /// A directory in a directory.
    Directory { name: &'a str, hash: Hash },
    /// A file in a directory.
    File {
        name: &'a str,
        /// The hash of its bytes.
        hash: Hash,
        /// Its bytes.
        size: u64,
    },
    /// A chunk of a large file.
    Chunk {
        hash: Hash,
        /// Its bytes.
        size: u64,
    },
}

/// The bytes of a content do not fit its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the content can't be decoded")]
pub struct InvalidContent;

impl Link<'_> {
    /// Returns the hash of the content that it leads to.
    pub fn hash(&self) -> Hash {
        match *self {
            Self::Part { hash } | Self::Directory { hash, .. } | Self::File { hash, .. } | Self::Chunk { hash, .. } => {
                hash
            }
        }
    }
}

/// Returns the references of a content, in order. The bytes of files and chunks refer to nothing.
/// Bounds the cost of hostile bytes, and never panics.
pub fn content_links(kind: ContentKind, bytes: &[u8]) -> Result<Vec<Link<'_>>, InvalidContent> {
    let links = match kind {
        ContentKind::Bytes => Ok(Vec::new()),
        ContentKind::Chunks => chunk_links(bytes),
        ContentKind::Directory => directory_links(bytes),
    };
    links.map_err(|DecodeError| InvalidContent)
}

fn directory_links(bytes: &[u8]) -> Result<Vec<Link<'_>>, DecodeError> {
    Ok(match decode(bytes)? {
        Listing::Parts(parts) => parts.iter().map(|part| Link::Part { hash: part.hash }).collect(),
        Listing::Entries(entries) => {
            let link = |(name, entry)| match entry {
                StoredEntry::File { hash, size, .. } => Some(Link::File { name, hash, size }),
                StoredEntry::Directory { hash, .. } => Some(Link::Directory { name, hash }),
                StoredEntry::Symlink { .. } => None,
            };
            entries.into_iter().filter_map(link).collect()
        }
    })
}

fn chunk_links(list: &[u8]) -> Result<Vec<Link<'_>>, DecodeError> {
    let (chunks, _) = decode_chunks(list)?;
    Ok(chunks
        .into_iter()
        .map(|(hash, size)| Link::Chunk { hash, size })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::session::hash_content;

    #[test]
    fn each_kind_of_content_has_its_links() {
        let hash = hash_content(b"one");
        let text = |name: &str| [&[u8::try_from(name.len()).unwrap()], name.as_bytes()].concat();
        let entries = [
            &[1, 0][..],
            &[0],
            &text("a"),
            hash.as_bytes(),
            &[3, 2],
            &text("b"),
            &text("a"),
            &[3],
            &text("c"),
            hash.as_bytes(),
            &[1, 0, 3],
        ]
        .concat();
        let links = content_links(ContentKind::Directory, &entries).unwrap();
        let (file, directory) = (
            Link::File {
                name: "a",
                hash,
                size: 3,
            },
            Link::Directory { name: "c", hash },
        );
        assert_eq!(links, [file, directory]);

        let parts = [&[1, 1][..], &text("a"), &[3], hash.as_bytes(), &[1, 0, 3]].concat();
        let links = content_links(ContentKind::Directory, &parts).unwrap();
        assert_eq!(links, [Link::Part { hash }]);

        let chunks = [&[1][..], hash.as_bytes(), &[0x80, 1]].concat();
        let links = content_links(ContentKind::Chunks, &chunks).unwrap();
        assert_eq!(links, [Link::Chunk { hash, size: 128 }]);

        assert_eq!(content_links(ContentKind::Bytes, &parts), Ok(Vec::new()));
        for kind in [ContentKind::Directory, ContentKind::Chunks] {
            for bytes in [&b""[..], &[2], &entries[..20], &[1, 0, 0], &[1, 2]] {
                assert_eq!(content_links(kind, bytes), Err(InvalidContent), "{bytes:?}");
            }
        }
    }
}
