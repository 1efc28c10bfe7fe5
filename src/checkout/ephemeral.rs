//! What a directory has that is part of no session, for those who read files: as commands see it.

use std::sync::Arc;

use super::beneath::open_root;
use super::blocking::blocking;
use super::error::CheckoutError;
use super::find::Search;
use super::run_directory::Checkout;
use super::scan::{Changed, read_one};
use crate::workspace::{FilePath, Tree, TreeError};

/// The most files and directories, and the most bytes, that are read at a time.
const MAX_ENTRIES: u64 = 2_000;
const MAX_BYTES: usize = 32 << 20;

impl Checkout {
    /// Returns the topmost files and directories that are ephemeral.
    pub fn ephemeral(&self) -> impl Iterator<Item = &str> {
        self.ephemeral.iter().map(String::as_str)
    }

    /// Returns the tree with what the directory has at an ephemeral path. Returns the same tree if
    /// the path is not ephemeral, or leads to nothing.
    pub async fn with_ephemeral(&self, tree: &Tree, path: &FilePath) -> Result<Tree, CheckoutError> {
        let is_at_or_above = |root: &str| {
            let below = path.as_str().strip_prefix(root);
            below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
        };
        if !self.ephemeral().any(is_at_or_above) {
            return Ok(tree.clone());
        }
        let (root, start, max_bytes) = (self.directory.files(), path.clone(), tree.limits().file_bytes);
        let facts = Arc::clone(&self.facts);
        let read = move || {
            let opened = open_root(&root).map_err(CheckoutError::of("opening", &root))?;
            let search = Search {
                root: &root,
                start: start.as_str(),
                is_ephemeral: &|_, _| false,
                is_known: &|_, _| true,
                max_entries: MAX_ENTRIES,
            };
            let found = search.find()?;
            let mut paths: Vec<_> = found.files.into_keys().collect();
            // A file, if it is not a directory.
            if paths.is_empty() {
                paths.push(start.as_str().to_owned());
            }
            let mut bytes = 0;
            let mut files = Vec::new();
            for path in paths.into_iter().filter(|path| !facts.has(path, false)) {
                let read = read_one(&opened, &path, max_bytes).map_err(CheckoutError::of("reading", path.as_str()))?;
                if let Changed::File { bytes: content, .. } = &read {
                    bytes += content.len();
                }
                if bytes > MAX_BYTES {
                    break;
                }
                files.push((path, read));
            }
            Ok(files)
        };
        let mut tree = tree.clone();
        for (path, read) in blocking(read).await? {
            // A file tool may have made it part of the session since the last scan.
            let known = FilePath::parse(&path).map_err(TreeError::from)?;
            if tree.entry(&known).await?.is_none() {
                (tree, _) = self.apply(&tree, &path, read).await?;
            }
        }
        Ok(tree)
    }
}
