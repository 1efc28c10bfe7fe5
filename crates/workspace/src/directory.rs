//! The canonical encoding of directories.
//!
//! ```text
//! content   = version entries | version parts
//! entries   = 0 entry…                 a directory of at most 512 entries, or a part of a larger one
//! entry     = kind name data           sorted by name
//! data      = hash size                kinds 0 (file) and 1 (executable file)
//!           | target                   kind 2 (symlink)
//!           | hash totals              kind 3 (directory)
//!           | hash size modified       kinds 4 (file) and 5 (executable file), with a time
//! parts     = 1 part…                  a larger directory
//! part      = name count hash totals   its first name and its number of entries
//! totals    = files directories bytes
//! ```
//!
//! A name or target is a text behind its length. Numbers have a variable length. A time is the
//! nanoseconds since 1970, and not 0. `split.rs` decides
//! where a large directory is cut. A directory has exactly one encoding, so decoding refuses all
//! others.

use super::bytes_codec::{DecodeError, Reader, write_text, write_varint};
use super::entry::Totals;
use super::limits::{MAX_FILES, MAX_NAME_BYTES, MAX_PATH_BYTES};
use super::path::check_name;
use super::split::MAX_PART_ENTRIES;
use super::symlink::is_valid_target;
use values::session::Hash;

const VERSION: u8 = 1;

const ENTRIES: u8 = 0;
const PARTS: u8 = 1;

const FILE: u8 = 0;
const EXECUTABLE: u8 = 1;
const SYMLINK: u8 = 2;
const DIRECTORY: u8 = 3;
const DATED_FILE: u8 = 4;
const DATED_EXECUTABLE: u8 = 5;

/// A decoded directory. Its texts borrow from the encoded bytes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Listing<'a> {
    /// The entries of a small directory or of a part, sorted by name.
    Entries(Vec<(&'a str, StoredEntry<'a>)>),
    /// The parts of a large directory, in order.
    Parts(Vec<StoredPart<'a>>),
}

/// An entry as it is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoredEntry<'a> {
    File {
        hash: Hash,
        size: u64,
        is_executable: bool,
        modified: u64,
    },
    Symlink {
        target: &'a str,
    },
    Directory {
        hash: Hash,
        totals: Totals,
    },
}

/// The record of a part in a large directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredPart<'a> {
    pub(super) first: &'a str,
    /// The number of its entries.
    pub(super) count: usize,
    pub(super) hash: Hash,
    /// The totals of the part, at any depth.
    pub(super) totals: Totals,
}

/// Encodes a small directory, or a part of a large one.
#[derive(Debug)]
pub(super) struct EntriesEncoder(Vec<u8>);

impl EntriesEncoder {
    /// Starts a directory without entries.
    pub(super) fn new() -> Self {
        Self(vec![VERSION, ENTRIES])
    }

    /// Adds an entry, whose name must come after those before it.
    pub(super) fn push(&mut self, name: &str, entry: StoredEntry<'_>) {
        let out = &mut self.0;
        match entry {
            StoredEntry::File {
                hash,
                size,
                is_executable,
                modified,
            } => {
                out.push(match (is_executable, modified) {
                    (false, 0) => FILE,
                    (true, 0) => EXECUTABLE,
                    (false, _) => DATED_FILE,
                    (true, _) => DATED_EXECUTABLE,
                });
                write_text(out, name);
                out.extend_from_slice(hash.as_bytes());
                write_varint(out, size);
                if modified > 0 {
                    write_varint(out, modified);
                }
            }
            StoredEntry::Symlink { target } => {
                out.push(SYMLINK);
                write_text(out, name);
                write_text(out, target);
            }
            StoredEntry::Directory { hash, totals } => {
                out.push(DIRECTORY);
                write_text(out, name);
                out.extend_from_slice(hash.as_bytes());
                write_totals(out, totals);
            }
        }
    }

    /// Returns the encoded directory.
    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Encodes a large directory.
pub(super) fn encode_parts<'a>(parts: impl Iterator<Item = StoredPart<'a>>) -> Vec<u8> {
    let mut out = vec![VERSION, PARTS];
    for part in parts {
        write_text(&mut out, part.first);
        write_varint(&mut out, part.count as u64);
        out.extend_from_slice(part.hash.as_bytes());
        write_totals(&mut out, part.totals);
    }
    out
}

fn write_totals(out: &mut Vec<u8>, totals: Totals) {
    for number in [totals.files, totals.directories, totals.bytes] {
        write_varint(out, number);
    }
}

/// Decodes a directory or a part of one.
pub(super) fn decode(bytes: &[u8]) -> Result<Listing<'_>, DecodeError> {
    let mut reader = Reader::new(bytes);
    match (reader.byte()?, reader.byte()?) {
        (VERSION, ENTRIES) => read_entries(reader).map(Listing::Entries),
        (VERSION, PARTS) => read_parts(reader).map(Listing::Parts),
        _ => Err(DecodeError),
    }
}

fn read_entries(mut reader: Reader<'_>) -> Result<Vec<(&str, StoredEntry<'_>)>, DecodeError> {
    let mut entries = Vec::new();
    let mut last = "";
    while !reader.is_empty() {
        if entries.len() == MAX_PART_ENTRIES {
            return Err(DecodeError);
        }
        let kind = reader.byte()?;
        let name = read_name(&mut reader, last)?;
        entries.push((name, read_entry(&mut reader, kind)?));
        last = name;
    }
    Ok(entries)
}

fn read_entry<'a>(reader: &mut Reader<'a>, kind: u8) -> Result<StoredEntry<'a>, DecodeError> {
    match kind {
        FILE | EXECUTABLE | DATED_FILE | DATED_EXECUTABLE => Ok(StoredEntry::File {
            hash: reader.hash()?,
            size: reader.varint()?,
            is_executable: matches!(kind, EXECUTABLE | DATED_EXECUTABLE),
            modified: match kind {
                FILE | EXECUTABLE => 0,
                _ => Some(reader.varint()?)
                    .filter(|modified| *modified > 0)
                    .ok_or(DecodeError)?,
            },
        }),
        SYMLINK => {
            let target = reader.text(MAX_PATH_BYTES)?;
            let entry = StoredEntry::Symlink { target };
            is_valid_target(target).then_some(entry).ok_or(DecodeError)
        }
        DIRECTORY => Ok(StoredEntry::Directory {
            hash: reader.hash()?,
            totals: read_totals(reader)?,
        }),
        _ => Err(DecodeError),
    }
}

fn read_parts(mut reader: Reader<'_>) -> Result<Vec<StoredPart<'_>>, DecodeError> {
    let mut parts = Vec::new();
    let (mut last, mut entries) = ("", 0);
    while !reader.is_empty() {
        let first = read_name(&mut reader, last)?;
        let count = usize::try_from(reader.varint()?).map_err(|_| DecodeError)?;
        if !(1..=MAX_PART_ENTRIES).contains(&count) {
            return Err(DecodeError);
        }
        entries += count;
        if entries as u64 > MAX_FILES {
            return Err(DecodeError);
        }
        let (hash, totals) = (reader.hash()?, read_totals(&mut reader)?);
        parts.push(StoredPart {
            first,
            count,
            hash,
            totals,
        });
        last = first;
    }
    Ok(parts)
}

/// Reads a valid name that comes after the last one. All names come after the empty text.
fn read_name<'a>(reader: &mut Reader<'a>, last: &str) -> Result<&'a str, DecodeError> {
    let name = reader.text(MAX_NAME_BYTES)?;
    let is_next = check_name(name).is_ok() && name > last;
    is_next.then_some(name).ok_or(DecodeError)
}

fn read_totals(reader: &mut Reader<'_>) -> Result<Totals, DecodeError> {
    Ok(Totals {
        files: reader.varint()?,
        directories: reader.varint()?,
        bytes: reader.varint()?,
    })
}
