//! Where a large directory is cut into parts.
//!
//! A directory of at most 256 entries is one part. A larger one is cut after each name whose BLAKE3
//! begins with seven zero bits, and after 512 entries at the latest. The cuts depend on the names
//! alone, so equal directories have equal parts, and a change rarely touches more than one part.

/// A directory of up to this many entries is not cut.
pub(super) const MAX_WHOLE_ENTRIES: usize = 256;
/// The most entries of a part.
pub(super) const MAX_PART_ENTRIES: usize = 512;

/// Returns whether a large directory is cut after a name.
pub(super) fn is_cut(name: &str) -> bool {
    blake3::hash(name.as_bytes()).as_bytes()[0] >> 1 == 0
}

/// Returns whether entries, in order, form exactly one part of a large directory.
pub(super) fn is_part<'a>(mut names: impl ExactSizeIterator<Item = &'a str>, is_last: bool) -> bool {
    let count = names.len();
    match names.position(is_cut) {
        Some(index) => index + 1 == count,
        None => is_last || count == MAX_PART_ENTRIES,
    }
}

/// Returns the length of the part with which entries begin; `None` if the part goes on after them.
pub(super) fn first_part<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> Option<usize> {
    let count = names.len();
    match names.take(MAX_PART_ENTRIES).position(is_cut) {
        Some(index) => Some(index + 1),
        None => (count >= MAX_PART_ENTRIES).then_some(MAX_PART_ENTRIES),
    }
}
