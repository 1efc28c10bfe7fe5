//! Checks the facts that stored trees state: kinds, names, totals, levels, paths and symlinks.
//! Reads no file.
//!
//! A hostile writer may have made the contents up. A directory states the totals of those in it,
//! and loading it proves them, so the root bounds the work. Each directory is read and measured
//! once, from below, under however many names and in however many trees it is.

use std::collections::HashMap;
use std::sync::Arc;

use super::contents::{Contents, ContentsError};
use super::edit::check_totals;
use super::entry::Totals;
use super::error::TreeError;
use super::limits::{MAX_FILE_BYTES, MAX_LEVELS, MAX_PATH_BYTES, WorkspaceLimits};
use super::load::MAX_BATCH;
use super::node::{Name, Node, Slot, load_nodes};
use super::path::FilePath;
use super::path_error::PathError;
use super::symlink::climb;
use values::session::Hash;

/// The directories of trees that were checked.
#[derive(Debug)]
pub struct Shapes<'a> {
    contents: &'a dyn Contents,
    limits: WorkspaceLimits,
    /// The totals that the parents of directories state.
    stated: HashMap<Hash, Totals>,
    measured: HashMap<Hash, Shape>,
}

/// The contents of a tree that no tree before it has.
#[derive(Debug, Default)]
pub(super) struct NewContents {
    /// Directories and parts of directories.
    pub(super) directories: Vec<Hash>,
    /// Files, with their bytes.
    pub(super) files: HashMap<Hash, u64>,
}

/// How far everything below a directory reaches.
#[derive(Debug, Clone, Default)]
struct Shape {
    /// The names of the path that has most of them.
    levels: usize,
    /// The bytes of the longest path.
    path_bytes: usize,
    /// The symlink that leads furthest above the directory.
    climb: Option<Climb>,
}

/// A symlink that leads above a directory.
#[derive(Debug, Clone)]
struct Climb {
    levels: usize,
    name: Name,
    target: Arc<str>,
}

/// A directory that is read, and not measured yet.
#[derive(Debug, Default)]
struct Directory {
    /// The shape of its names alone.
    own: Shape,
    /// The directories in it, each with the bytes of its name.
    below: Vec<(usize, Hash)>,
}

impl<'a> Shapes<'a> {
    /// Begins with no directory.
    pub fn new(contents: &'a dyn Contents, limits: WorkspaceLimits) -> Self {
        Self {
            contents,
            limits,
            stated: HashMap::new(),
            measured: HashMap::new(),
        }
    }

    /// Checks a tree. Fails with the first fault.
    pub async fn check(&mut self, root: Hash) -> Result<(), TreeError> {
        self.check_new(root).await.map(drop)
    }

    /// Checks a tree, and returns the contents that no tree before it has.
    pub(super) async fn check_new(&mut self, root: Hash) -> Result<NewContents, TreeError> {
        let mut new = NewContents::default();
        if !self.measured.contains_key(&root) {
            let directories = self.read(root, &mut new).await?;
            self.measure(root, directories)?;
        }
        let shape = self.measured.get(&root).ok_or(ContentsError::Corrupt { hash: root })?;
        if shape.levels > MAX_LEVELS {
            return Err(PathError::TooDeep.into());
        }
        if shape.path_bytes > MAX_PATH_BYTES {
            return Err(PathError::TooLong.into());
        }
        match &shape.climb {
            None => Ok(new),
            Some(Climb { name, target, .. }) => Err(TreeError::UnsafeSymlink {
                path: FilePath::parse(name)?,
                target: target.to_string(),
            }),
        }
    }

    /// Reads the directories whose shape is not known.
    async fn read(&mut self, root: Hash, new: &mut NewContents) -> Result<HashMap<Hash, Directory>, TreeError> {
        let root = Node::stored(root, None);
        let totals = root.index(self.contents).await?.totals();
        check_totals(self.limits, Totals::default(), totals)?;
        let mut waiting = vec![root];
        let mut directories = HashMap::new();
        while !waiting.is_empty() {
            let batch = waiting.split_off(waiting.len().saturating_sub(MAX_BATCH));
            load_nodes(&batch, self.contents).await?;
            for node in batch {
                let Some(hash) = node.hash() else { continue };
                let index = node.index(self.contents).await?;
                new.directories.push(hash);
                new.directories
                    .extend(index.parts().iter().filter_map(|part| part.hash()));
                let mut directory = Directory::default();
                for (name, slot) in index.items(self.contents).await? {
                    directory.add(name, slot);
                    match slot {
                        Slot::File(file) => self.add_file(name, file.hash, file.size, new)?,
                        Slot::Symlink(_) => {}
                        Slot::Directory(below) => waiting.extend(self.unread(below)?),
                    }
                }
                directories.insert(hash, directory);
            }
        }
        Ok(directories)
    }

    /// Returns the directory if it is to be read. One hash has one size.
    fn unread(&mut self, node: &Arc<Node>) -> Result<Option<Arc<Node>>, TreeError> {
        let (Some(hash), totals) = (node.hash(), node.known_totals()) else {
            return Ok(None);
        };
        match self.stated.insert(hash, totals) {
            None => Ok(Some(Arc::clone(node))),
            Some(stated) if stated == totals => Ok(None),
            Some(_) => Err(ContentsError::Corrupt { hash }.into()),
        }
    }

    fn add_file(&self, name: &Name, hash: Hash, size: u64, new: &mut NewContents) -> Result<(), TreeError> {
        let limit = self.limits.file_bytes.min(MAX_FILE_BYTES);
        if size > limit {
            let path = FilePath::parse(name)?;
            return Err(TreeError::FileTooLarge { path, size, limit });
        }
        match new.files.insert(hash, size) {
            Some(other) if other != size => Err(ContentsError::Corrupt { hash }.into()),
            _ => Ok(()),
        }
    }

    /// Measures directories, the lowest first.
    fn measure(&mut self, root: Hash, mut directories: HashMap<Hash, Directory>) -> Result<(), TreeError> {
        // Directories from the root down, each with those in it that are still to be measured.
        let directory = directories.remove(&root).unwrap_or_default();
        let mut open = vec![(root, directory.below.clone(), directory)];
        while let Some((hash, waiting, directory)) = open.last_mut() {
            if let Some((_, below)) = waiting.pop() {
                if let Some(directory) = directories.remove(&below) {
                    open.push((below, directory.below.clone(), directory));
                }
                if open.len() > MAX_LEVELS + 1 {
                    return Err(PathError::TooDeep.into());
                }
                continue;
            }
            let mut shape = std::mem::take(&mut directory.own);
            for (name_bytes, below) in &directory.below {
                if let Some(below) = self.measured.get(below) {
                    shape.add(*name_bytes, below);
                }
            }
            self.measured.insert(*hash, shape);
            open.pop();
        }
        Ok(())
    }
}

impl Directory {
    fn add(&mut self, name: &Name, slot: &Slot) {
        match slot {
            Slot::Directory(node) => self.below.extend(node.hash().map(|hash| (name.len(), hash))),
            Slot::File(_) => self.own.add(name.len(), &Shape::default()),
            Slot::Symlink(target) => {
                let levels = climb(target);
                let climb = (levels > 0).then(|| Climb {
                    // One level more, since a shape counts from the directory that has the name.
                    levels: levels + 1,
                    name: Arc::clone(name),
                    target: Arc::clone(target),
                });
                let own = Shape {
                    climb,
                    ..Shape::default()
                };
                self.own.add(name.len(), &own);
            }
        }
    }
}

impl Shape {
    /// Adds the entries below a name.
    fn add(&mut self, name_bytes: usize, below: &Self) {
        let slash = usize::from(below.path_bytes > 0);
        self.levels = self.levels.max(1 + below.levels);
        self.path_bytes = self.path_bytes.max(name_bytes + slash + below.path_bytes);
        let highest = self.climb.as_ref().map_or(0, |climb| climb.levels);
        if let Some(climb) = below.climb.as_ref().filter(|climb| climb.levels > highest + 1) {
            self.climb = Some(Climb {
                levels: climb.levels - 1,
                ..climb.clone()
            });
        }
    }
}
