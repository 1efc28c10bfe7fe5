//! Trees of files to store. Directories are encoded here by hand, so that the stored form is
//! checked as well.

use bytes::Bytes;
use values::json::Object;
use values::session::{EnvironmentState, Hash, WorkspaceState, hash_content, hash_directory};
use workspace::{Content, ContentKind};

/// An entry of a directory, under its name.
#[derive(Debug, Clone, Copy)]
pub enum Node {
    /// A file of that many bytes.
    File(Hash, usize),
    /// A directory with so many files, directories and bytes in it.
    Directory(Hash, [usize; 3]),
}

/// A content of the bytes of a file.
pub fn file(bytes: impl Into<Bytes>) -> Content {
    let bytes = bytes.into();
    Content {
        hash: hash_content(&bytes),
        kind: ContentKind::Bytes,
        bytes,
    }
}

/// A large file: its chunks, and their list under the hash of all bytes.
pub fn chunked(chunks: &[Content]) -> Content {
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
pub fn entry(content: &Content) -> Node {
    Node::File(content.hash, content.bytes.len())
}

/// Returns the entry of a stored directory.
pub fn below(directory: &Content) -> Node {
    Node::Directory(directory.hash, totals_of(&directory.bytes))
}

/// A small directory. The names must be sorted.
pub fn directory(entries: &[(&str, Node)]) -> Content {
    let mut encoded = vec![1, 0];
    for (name, node) in entries {
        encoded.push(if matches!(node, Node::File(..)) { 0 } else { 3 });
        push_name(&mut encoded, name);
        match node {
            Node::File(hash, size) => {
                encoded.extend_from_slice(hash.as_bytes());
                push_number(&mut encoded, *size);
            }
            Node::Directory(hash, totals) => {
                encoded.extend_from_slice(hash.as_bytes());
                for number in totals {
                    push_number(&mut encoded, *number);
                }
            }
        }
    }
    stored_directory(encoded)
}

/// A directory of many names for the same entry: the directory, and its parts.
pub fn large_directory(entry: Node) -> (Content, Vec<Content>) {
    let names: Vec<String> = (0..600).map(|number| format!("{number:03}")).collect();
    let is_cut = |name: &String| blake3::hash(name.as_bytes()).as_bytes()[0] >> 1 == 0;
    let ranges = names.split_inclusive(is_cut);
    let parts = ranges.map(|names| {
        let entries: Vec<_> = names.iter().map(|name| (name.as_str(), entry)).collect();
        (names, directory(&entries))
    });
    let (mut encoded, mut all) = (vec![1, 1], Vec::new());
    for (names, part) in parts {
        assert!(names.len() < 512);
        push_name(&mut encoded, &names[0]);
        push_number(&mut encoded, names.len());
        encoded.extend_from_slice(part.hash.as_bytes());
        for number in totals_of(&part.bytes) {
            push_number(&mut encoded, number);
        }
        all.push(part);
    }
    assert!(all.len() > 1);
    (stored_directory(encoded), all)
}

/// Makes an environment with files, and a variable of this value.
pub fn environment_of(tree: Hash, variable: &str) -> EnvironmentState {
    EnvironmentState {
        variables: [("which".to_owned(), variable.into())].into(),
        workspace: Some(WorkspaceState {
            tree,
            other: Object::new(),
        }),
        ..EnvironmentState::default()
    }
}

/// Adds up the files, the directories and the bytes in an encoded directory.
fn totals_of(encoded: &[u8]) -> [usize; 3] {
    let mut rest = &encoded[2..];
    let is_large = encoded[1] == 1;
    let mut sum = [0; 3];
    while !rest.is_empty() {
        let kind = if is_large { 4 } else { take(&mut rest, 1)[0] };
        let length = take_number(&mut rest);
        take(&mut rest, length);
        if is_large {
            take_number(&mut rest);
        }
        take(&mut rest, 32);
        let added = match kind {
            0 => [1, 0, take_number(&mut rest)],
            _ => [0; 3].map(|_| take_number(&mut rest)),
        };
        sum = [0, 1, 2].map(|at| sum[at] + added[at]);
        sum[1] += usize::from(kind == 3);
    }
    sum
}

fn take<'b>(rest: &mut &'b [u8], length: usize) -> &'b [u8] {
    let (taken, after) = rest.split_at(length);
    *rest = after;
    taken
}

fn take_number(rest: &mut &[u8]) -> usize {
    let (mut number, mut shift) = (0, 0);
    loop {
        let byte = take(rest, 1)[0];
        number |= usize::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            return number;
        }
    }
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
