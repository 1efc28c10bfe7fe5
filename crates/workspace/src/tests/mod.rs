//! Tests of workspaces as a whole, and what they share.

mod confirm;
mod diff;
mod edit;
mod git;
mod hostile;
mod large;
mod merge;
mod model;
mod resolve;
mod save;
mod unified;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::{Entry, FilePath, InMemoryContents, Tree, TreeError, WorkspaceLimits};

fn path(text: &str) -> FilePath {
    FilePath::parse(text).unwrap()
}

/// Returns an empty tree and its contents.
fn empty() -> (Arc<InMemoryContents>, Tree) {
    let contents = Arc::new(InMemoryContents::default());
    let tree = Tree::empty(contents.clone(), WorkspaceLimits::default());
    (contents, tree)
}

/// Applies changes to a tree. `a: text` writes a file, `a*: text` an executable one, `a -> b` makes
/// a symlink, `a/` a directory, and `!a` removes what is there.
async fn change(tree: &Tree, changes: &[impl AsRef<str>]) -> Tree {
    let mut tree = tree.clone();
    for change in changes {
        tree = try_change(&tree, change.as_ref()).await.unwrap();
    }
    tree
}

/// Applies changes to a tree, and saves it.
async fn change_and_save(tree: &Tree, changes: &[impl AsRef<str>]) -> Tree {
    change(tree, changes).await.save().await.unwrap()
}

/// Writes a file.
async fn with_file(tree: &Tree, at: &str, bytes: impl Into<Bytes>) -> Tree {
    tree.with_file(&path(at), bytes.into(), false).await.unwrap()
}

async fn try_change(tree: &Tree, change: &str) -> Result<Tree, TreeError> {
    if let Some(removed) = change.strip_prefix('!') {
        return tree.without(&path(removed)).await;
    }
    if let Some((link, target)) = change.split_once(" -> ") {
        return tree.with_symlink(&path(link), target).await;
    }
    if let Some((file, text)) = change.split_once(": ") {
        let (file, is_executable) = file.strip_suffix('*').map_or((file, false), |file| (file, true));
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        return tree.with_file(&path(file), bytes, is_executable).await;
    }
    tree.with_directory(&path(change.strip_suffix('/').unwrap())).await
}

/// Shows a tree in the form of the changes that make it.
async fn shown(tree: &Tree) -> Vec<String> {
    let mut all = Vec::new();
    for (path, entry) in tree.walk(None).await.unwrap() {
        all.push(match &entry {
            Entry::File { is_executable, .. } => {
                let text = tree.read_entry(&entry).await.unwrap();
                let mark = if *is_executable { "*" } else { "" };
                format!("{path}{mark}: {}", str::from_utf8(&text).unwrap())
            }
            Entry::Symlink { target } => format!("{path} -> {target}"),
            Entry::Directory { .. } => format!("{path}/"),
        });
    }
    all
}

/// Opens a saved tree again, without anything loaded.
fn reopened(contents: &Arc<InMemoryContents>, tree: &Tree) -> Tree {
    match tree.hash() {
        Some(hash) => Tree::open(contents.clone(), tree.limits(), hash),
        None => Tree::empty(contents.clone(), tree.limits()),
    }
}

/// Returns a text of lines.
fn text_of(lines: impl IntoIterator<Item = impl fmt::Display>) -> String {
    let lines = lines.into_iter().map(|line| format!("{line}\n"));
    lines.collect::<Vec<_>>().concat()
}

/// Runs asynchronous code in a property test.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.build().unwrap().block_on(work)
}

/// Small numbers without order, the same in each run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.byte()).collect()
    }
}
