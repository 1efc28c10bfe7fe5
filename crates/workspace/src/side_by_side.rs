//! Several directories side by side, for comparing and merging them.

use std::collections::HashSet;
use std::sync::Arc;

use super::contents::{Contents, ContentsError};
use super::node::{Index, Item, Node, Part, Slot, load_indexes, load_parts};
use values::session::Hash;

/// The same directory in several trees; `None` in those without it.
pub(super) type Sides<const N: usize> = [Option<Arc<Node>>; N];

/// Loads directories in batches. Returns the names in each directory that may differ: of a large
/// directory, only names in parts that not all trees have.
pub(super) async fn load_differing<'a, const N: usize>(
    directories: &'a [Sides<N>],
    contents: [&dyn Contents; N],
) -> Result<Vec<[Vec<&'a Item>; N]>, ContentsError> {
    for (side, contents) in contents.iter().enumerate() {
        let nodes: Vec<_> = directories.iter().filter_map(|sides| sides[side].clone()).collect();
        load_indexes(&nodes, *contents).await?;
    }
    let mut differing = Vec::with_capacity(directories.len());
    for sides in directories {
        let mut indexes = [None; N];
        for (side, node) in sides.iter().enumerate() {
            if let Some(node) = node {
                indexes[side] = Some(node.index(contents[side]).await?);
            }
        }
        differing.push(differing_parts(indexes));
    }
    for (side, contents) in contents.iter().enumerate() {
        let parts: Vec<_> = differing.iter().flat_map(|parts| &parts[side]).copied().collect();
        load_parts(&parts, *contents).await?;
    }
    let mut names = Vec::with_capacity(differing.len());
    for parts in differing {
        let mut items = [const { Vec::new() }; N];
        for (side, parts) in parts.iter().enumerate() {
            for part in parts {
                items[side].extend(part.items(contents[side]).await?);
            }
        }
        names.push(items);
    }
    Ok(names)
}

/// Returns the parts of each directory that not all of them have. Parts with equal hashes are
/// equal.
fn differing_parts<const N: usize>(indexes: [Option<&Index>; N]) -> [Vec<&Arc<Part>>; N] {
    let parts = indexes.map(|index| index.map_or(&[][..], Index::parts));
    let hashes: [HashSet<Hash>; N] = parts.map(|parts| parts.iter().filter_map(|part| part.hash()).collect());
    let is_shared = |part: &&Arc<Part>| {
        let hash = part.hash();
        hash.is_some_and(|hash| hashes.iter().all(|hashes| hashes.contains(&hash)))
    };
    parts.map(|parts| parts.iter().filter(|part| !is_shared(part)).collect())
}

/// Iterates over the names of directories, in order, with the entry of each under the name.
pub(super) fn by_name<'a, const N: usize>(
    directories: &[Vec<&'a Item>; N],
) -> impl Iterator<Item = (&'a str, [Option<&'a Slot>; N])> {
    let mut rest = directories.each_ref().map(|items| items.iter().copied().peekable());
    std::iter::from_fn(move || {
        let next = rest
            .iter_mut()
            .filter_map(|items| items.peek().map(|(name, _)| &**name));
        let name: &str = next.min()?;
        let slots = rest
            .each_mut()
            .map(|items| items.next_if(|(other, _)| **other == *name));
        Some((name, slots.map(|item| item.map(|(_, slot)| slot))))
    })
}

/// Returns whether two directories have the same under a name, as far as this is known without
/// loading more of them.
pub(super) fn is_same(one: Option<&Slot>, other: Option<&Slot>) -> bool {
    match (one, other) {
        (Some(one), Some(other)) => one.is_same(other) || (one.is_empty_directory() && other.is_empty_directory()),
        (None, None) => true,
        _ => false,
    }
}
