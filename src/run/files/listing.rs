//! Lists the entries of a directory, a page at a time. Loads only the directories that a page
//! needs.

use std::cmp::Ordering;

use workspace::{Entry, FilePath, PathError, Tree, TreeError};

/// A directory whose entries are being listed.
struct Level {
    path: Option<FilePath>,
    rest: std::vec::IntoIter<(String, Entry)>,
}

/// Returns the entries of a directory that come after a path, at most `max` of them. `None` means
/// the root.
///
/// Entries are in the order of their names. With `is_recursive`, a directory comes before its
/// entries. Symlinks are not followed.
pub async fn list_after(
    tree: &Tree,
    directory: Option<&FilePath>,
    is_recursive: bool,
    after: Option<&FilePath>,
    max: usize,
) -> Result<Vec<(FilePath, Entry)>, TreeError> {
    let mut found = Vec::new();
    let mut open = vec![Level::open(tree, directory).await?];
    while found.len() < max
        && let Some(level) = open.last_mut()
    {
        let Some((name, entry)) = level.rest.next() else {
            open.pop();
            continue;
        };
        let path = below(level.path.as_ref(), &name)?;
        let order = after.map_or(Ordering::Greater, |after| path.names().cmp(after.names()));
        let is_on_the_way = order.is_ge() || after.is_some_and(|after| after.is_below(&path));
        if is_recursive && is_on_the_way && matches!(entry, Entry::Directory { .. }) {
            open.push(Level::open(tree, Some(&path)).await?);
        }
        if order.is_gt() {
            found.push((path, entry));
        }
    }
    Ok(found)
}

impl Level {
    async fn open(tree: &Tree, path: Option<&FilePath>) -> Result<Self, TreeError> {
        Ok(Self {
            path: path.cloned(),
            rest: tree.list(path).await?.into_iter(),
        })
    }
}

fn below(directory: Option<&FilePath>, name: &str) -> Result<FilePath, PathError> {
    match directory {
        Some(directory) => directory.join(name),
        None => FilePath::parse(name),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::*;
    use workspace::{InMemoryContents, WorkspaceLimits};

    fn path(text: &str) -> FilePath {
        FilePath::parse(text).unwrap()
    }

    async fn tree(paths: &[&str]) -> Tree {
        let mut tree = Tree::empty(Arc::new(InMemoryContents::default()), WorkspaceLimits::default());
        for text in paths {
            tree = tree.with_file(&path(text), Bytes::new(), false).await.unwrap();
        }
        tree
    }

    async fn page(tree: &Tree, is_recursive: bool, after: Option<&str>, max: usize) -> Vec<String> {
        let after = after.map(path);
        let found = list_after(tree, None, is_recursive, after.as_ref(), max).await.unwrap();
        found.into_iter().map(|(path, _)| path.as_str().to_owned()).collect()
    }

    /// `-` comes before `/` and `b` after it, so the order of texts would differ from the order of
    /// names.
    #[tokio::test]
    async fn pages_of_any_length_list_everything_once() {
        let tree = tree(&["a/x/1", "a/x/2", "a-b", "ab", "a/y", "c/d/e/f"]).await;
        let all = [
            "a", "a/x", "a/x/1", "a/x/2", "a/y", "a-b", "ab", "c", "c/d", "c/d/e", "c/d/e/f",
        ];
        for length in 1..=all.len() {
            let (mut listed, mut after) = (Vec::new(), None);
            loop {
                let page = page(&tree, true, after.as_deref(), length).await;
                let Some(last) = page.last() else { break };
                after = Some(last.clone());
                listed.extend(page);
            }
            assert_eq!(listed, all, "{length}");
        }
        assert_eq!(page(&tree, false, None, 9).await, ["a", "a-b", "ab", "c"]);
        assert_eq!(page(&tree, false, Some("a"), 1).await, ["a-b"]);
    }

    #[tokio::test]
    async fn a_page_after_a_path_that_is_gone_goes_on() {
        let tree = tree(&["a/1", "b/1", "c"]).await;
        assert_eq!(page(&tree, true, Some("a/5/6"), 9).await, ["b", "b/1", "c"]);
        assert_eq!(page(&tree, true, Some("d"), 9).await, [""; 0]);
    }
}
