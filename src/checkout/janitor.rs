//! The directories on disk, and the thread that cleans, retains and removes them.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::beneath::open_root;
use super::cleaning::restore;
use super::facts::{Fact, Facts};
use super::file_clock::file_time_after;
use super::level::{Layers, Level};
use super::living::unloaded;
use super::removal::remove;
use crate::workspace::Tree;

/// How long the end of the process waits for the janitor.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a directory that is not empty yet is removed again, and the pause before.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);

/// The name of the directory for temporary files.
pub(super) const SCRATCH: &str = "scratch";

/// A directory on disk. It is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    /// Empty once the directory was taken.
    pub(super) path: PathBuf,
    /// The directory that its files are a layer over, if there is one.
    pub(super) base: Option<Arc<Base>>,
    pub(super) janitor: Janitor,
}

/// A directory that several checkouts share. Nobody writes to it until the last of them is gone.
#[derive(Debug)]
pub(super) struct Base {
    pub(super) tree: Tree,
    pub(super) facts: Arc<Facts>,
    pub(super) directory: Directory,
}

/// A directory of an ended run.
#[derive(Debug)]
pub(super) struct Retained {
    /// A saved one.
    pub(super) tree: Tree,
    pub(super) directory: Directory,
    pub(super) facts: Arc<Facts>,
}

/// Cleans and removes directories on a thread of its own.
#[derive(Debug, Clone)]
pub(super) struct Janitor(Arc<Mutex<Sender<Work>>>);

/// What the janitor does.
#[derive(Debug)]
pub(super) enum Work {
    Remove(PathBuf),
    /// Remove the folder of a process, and then the file that it has locked.
    RemoveFolder {
        folder: PathBuf,
        lock: PathBuf,
    },
    Retain(Box<Retained>),
    /// Say that all work before this is done.
    Report(Sender<()>),
}

impl Directory {
    /// Returns the directory where commands find the files.
    pub(super) fn files(&self) -> PathBuf {
        self.path.join("files")
    }

    /// Returns the directory where the files are written.
    pub(super) fn layer(&self) -> PathBuf {
        match self.layers() {
            Some(layers) => layers.upper,
            None => self.files(),
        }
    }

    /// Returns what commands see as one directory.
    pub(super) fn layers(&self) -> Option<Layers> {
        let base = self.base.as_ref()?;
        Some(Layers {
            lower: base.directory.layer(),
            upper: self.path.join("upper"),
            work: self.path.join("work"),
        })
    }

    /// Opens it to read and write the files.
    pub(super) fn open(&self) -> io::Result<Level> {
        match self.layers() {
            Some(layers) => Level::layered(&layers),
            None => Level::plain(&self.files()),
        }
    }

    /// Returns the directory for temporary files.
    pub(super) fn scratch(&self) -> PathBuf {
        self.path.join(SCRATCH)
    }

    /// Returns a file to read the clock of the file system with.
    pub(super) fn probe(&self) -> PathBuf {
        self.path.join("clock")
    }

    /// Takes the directory out of a place that is about to be dropped.
    pub(super) fn take(&mut self) -> Self {
        Self {
            path: std::mem::take(&mut self.path),
            base: self.base.take(),
            janitor: self.janitor.clone(),
        }
    }

    /// Retains the directory for the next run that begins with this tree.
    pub(super) fn retain(self, tree: &Tree, facts: Arc<Facts>) {
        let Some(tree) = unloaded(tree) else {
            return;
        };
        let janitor = self.janitor.clone();
        janitor.send(Work::Retain(Box::new(Retained {
            tree,
            directory: self,
            facts,
        })));
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            self.janitor.send(Work::Remove(self.path.clone()));
        }
    }
}

impl Janitor {
    /// Starts the thread. `retain` takes a clean directory, and returns the one that has no room.
    pub(super) fn start(retain: impl Fn(Retained) -> Option<Retained> + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            for work in receiver {
                match work {
                    Work::Report(reporter) => drop(reporter.send(())),
                    Work::Remove(path) => log_failure(&path, remove_used(&path)),
                    Work::RemoveFolder { folder, lock } => {
                        log_failure(&folder, remove_used(&folder).and_then(|()| remove_path(&lock)));
                    }
                    Work::Retain(retained) => {
                        if let Some(retained) = cleaned(*retained) {
                            drop(retain(retained));
                        }
                    }
                }
            }
        });
        Self(Arc::new(Mutex::new(sender)))
    }

    /// Waits until the work so far is done, but not for long: the next process does the rest.
    pub(super) fn finish(&self) {
        let (sender, receiver) = channel();
        self.send(Work::Report(sender));
        let _ = receiver.recv_timeout(PATIENCE);
    }

    pub(super) fn send(&self, work: Work) {
        // Without the thread, the next process removes the directory.
        let _ = self.0.lock().send(work);
    }
}

/// Makes a directory as it would be if its tree was written anew. Returns `None` if that is too
/// much work.
fn cleaned(mut retained: Retained) -> Option<Retained> {
    // A file with several names would have to be copied.
    if retained.facts.files.values().any(Fact::is_linked) {
        return None;
    }
    let done = clean(&mut retained);
    let is_clean = done.is_ok();
    log_failure(&retained.directory.path, done);
    is_clean.then_some(retained)
}

/// Removing a file changes the times of its directory, but those of no file. Only a new mode
/// changes those of its file.
fn clean(retained: &mut Retained) -> io::Result<()> {
    let directory = &retained.directory;
    let changed = restore(&directory.open()?, &retained.facts)?;
    restore(&Level::plain(&directory.scratch())?, &Facts::default())?;
    if let Some(newest) = changed.values().map(Fact::changed).max() {
        let scanned_at = file_time_after(newest, &directory.probe())?;
        let facts = Arc::make_mut(&mut retained.facts);
        facts.files.extend(changed);
        facts.scanned_at = scanned_at;
    }
    Ok(())
}

fn log_failure(path: &Path, result: io::Result<()>) {
    if let Err(error) = result {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(path = %path.display(), error, "a directory of a run can't be cleaned or removed");
    }
}

/// Removes a directory. Processes that are being killed may still write to it, so this tries again
/// for a while.
fn remove_used(path: &Path) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match remove_path(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => thread::sleep(PAUSE),
            removed => return removed,
        }
    }
    remove_path(path)
}

fn remove_path(path: &Path) -> io::Result<()> {
    match (path.parent(), path.file_name().and_then(|name| name.to_str())) {
        (Some(parent), Some(name)) => remove(open_root(parent)?, name),
        _ => Ok(()),
    }
}
