//! Follows a path through a tree, and the symlinks on it, as an operating system does.

use std::sync::Arc;

use super::error::TreeError;
use super::limits::MAX_LINKS;
use super::node::{Name, Node, Slot};
use super::path::FilePath;
use super::path_error::PathError;
use super::tree::Tree;

/// Whether a symlink at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastLink {
    Follow,
    Keep,
}

/// Where a path leads.
#[derive(Debug)]
pub(super) enum Position {
    /// To the root.
    Root,
    /// To a name in a directory.
    Name {
        /// The directories from the root on, each with the name in it that leads on.
        steps: Vec<Step>,
        /// The slot of the last name.
        slot: Option<Slot>,
        /// The names that follow. Only if nothing has the last name.
        below: Vec<Name>,
    },
}

/// A directory on a path, and the name in it that leads on.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) directory: Arc<Node>,
    pub(super) name: Name,
}

impl Position {
    /// Returns the path of the position; `None` for the root.
    pub(super) fn path(&self) -> Result<Option<FilePath>, PathError> {
        match self {
            Self::Root => Ok(None),
            Self::Name { steps, below, .. } => {
                let names: Vec<_> = steps.iter().map(|step| &step.name).chain(below).collect();
                FilePath::from_names(&names)
            }
        }
    }
}

impl Tree {
    /// Returns where a path leads. All names before the last one must be directories or symlinks to
    /// some, as far as they exist.
    pub(super) async fn locate(&self, path: &FilePath, last: LastLink) -> Result<Position, TreeError> {
        let mut walk = PathWalk {
            path,
            steps: Vec::new(),
            directory: Arc::clone(self.root()),
            todo: path.names().rev().map(Name::from).collect(),
            links: 0,
        };
        while let Some(name) = walk.todo.pop() {
            match &*name {
                "" | "." => continue,
                ".." => {
                    walk.leave()?;
                    continue;
                }
                _ => {}
            }
            let found = walk.directory.find(&name, self.contents()).await?;
            match found.cloned() {
                Some(Slot::Directory(node)) => walk.enter(name, node),
                Some(Slot::Symlink(target)) if last == LastLink::Follow || walk.leads_on() => {
                    walk.follow(&name, &target)?;
                }
                slot => return walk.end(name, slot),
            }
        }
        Ok(walk.at_directory())
    }
}

/// The state of following a path.
struct PathWalk<'a> {
    path: &'a FilePath,
    /// The way to the directory, without symlinks.
    steps: Vec<Step>,
    directory: Arc<Node>,
    /// The names to follow, the next one last.
    todo: Vec<Name>,
    links: usize,
}

impl PathWalk<'_> {
    fn enter(&mut self, name: Name, node: Arc<Node>) {
        let directory = std::mem::replace(&mut self.directory, node);
        self.steps.push(Step { directory, name });
    }

    fn leave(&mut self) -> Result<(), TreeError> {
        let step = self.steps.pop().ok_or(PathError::Outside)?;
        self.directory = step.directory;
        Ok(())
    }

    fn follow(&mut self, name: &str, target: &str) -> Result<(), TreeError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            let path = self.path.clone();
            return Err(TreeError::SymlinkLoop { path });
        }
        let names = target.split('/').rev().filter(|name| !matches!(*name, "" | "."));
        let names: Vec<_> = names.map(Name::from).collect();
        let rises = names.iter().rev().take_while(|name| &***name == "..").count();
        if rises > self.steps.len() {
            let path = self.path_of(name)?;
            let target = target.to_owned();
            return Err(TreeError::UnsafeSymlink { path, target });
        }
        self.todo.extend(names);
        Ok(())
    }

    fn leads_on(&self) -> bool {
        !self.todo.is_empty()
    }

    /// Ends at a name that is no directory.
    fn end(self, name: Name, slot: Option<Slot>) -> Result<Position, TreeError> {
        if slot.is_some() && self.leads_on() {
            return Err(TreeError::NotADirectory {
                path: self.path_of(&name)?,
            });
        }
        if self.todo.iter().any(|name| &**name == "..") {
            return Err(TreeError::NotFound {
                path: self.path_of(&name)?,
            });
        }
        let (mut steps, below) = (self.steps, self.todo.into_iter().rev().collect());
        steps.push(Step {
            directory: self.directory,
            name,
        });
        Ok(Position::Name { steps, slot, below })
    }

    /// Ends at a directory.
    fn at_directory(self) -> Position {
        if self.steps.is_empty() {
            return Position::Root;
        }
        Position::Name {
            steps: self.steps,
            slot: Some(Slot::Directory(self.directory)),
            below: Vec::new(),
        }
    }

    /// Returns the path of a name in the directory.
    fn path_of(&self, name: &str) -> Result<FilePath, PathError> {
        let names: Vec<&str> = self.steps.iter().map(|step| &*step.name).chain([name]).collect();
        FilePath::parse(&names.join("/"))
    }
}
