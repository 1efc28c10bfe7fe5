//! The directories of this process: directories in use, and directories of ended runs that are
//! retained for the next run of their line.
//!
//! Commands may store the path of their directory: in variables, links and caches. So a line of
//! sessions finds its directory under one path again, as far as possible, also in a new process and
//! on another machine with the same configuration: `ROOT/NUMBER/run-HASH/workspace`. The process
//! has the lowest free number, and the hash is the hash of the line.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::fs::FlockOperation;
use tokio::time::sleep;

use super::beneath::make_private;
use super::error::CheckoutError;
use super::exact_times::has_exact_times;
use super::janitor::{Directory, Janitor, Owner, Retained, Work};
use super::run_directory::Checkout;
use super::shelf::Shelf;
use crate::Tree;
use crate::command_paths::{RUN_NAME_DIGITS, RUN_NAME_PREFIX};
use values::session::hash_content;
use values::tenant::TenantId;

/// The file that a living process has locked is beside its folder and has this extension. It is
/// made before the folder and removed after it, so that a folder always has one.
const LOCK: &str = "lock";
/// How long a run waits until the directory of its line is clean, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(1);

/// The directories of this process.
#[derive(Debug)]
pub struct Checkouts {
    /// The folder of this process.
    folder: PathBuf,
    /// The lock of the folder. Dropped with the process, so that others know that it has ended.
    _lock: File,
    pub(super) shelf: Arc<Mutex<Shelf>>,
    janitor: Janitor,
    /// Whether each change of a file shows in its times.
    has_exact_times: bool,
}

/// A directory that belongs to no session. It is removed when it is dropped.
#[derive(Debug)]
pub struct ScratchDirectory(Directory);

impl Checkouts {
    /// Makes a folder for the directories of this process below `root`, and removes the folders of
    /// processes that have ended. Retains at most `capacity` directories of ended runs.
    pub fn open(root: &Path, capacity: usize) -> Result<Self, CheckoutError> {
        prepare(root)?;
        let root = root.canonicalize().map_err(CheckoutError::of("examining", root))?;
        let (folder, lock) = lock_folder(&root)?;
        let shelf = Arc::new(Mutex::new(Shelf::new(capacity)));
        let janitor = Janitor::start({
            let shelf = Arc::clone(&shelf);
            move |retained| shelf.lock().put(retained)
        });
        move_away(&folder)?;
        remove_abandoned(&root, &janitor)?;
        make_private(&folder)?;
        Ok(Self {
            has_exact_times: has_exact_times(&folder),
            folder,
            _lock: lock,
            shelf,
            janitor,
        })
    }

    /// Returns the folder of this process.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns a directory with the files of a saved tree: the retained one of the line, or a new
    /// one. A line is the sessions of one conversation.
    pub async fn take(&self, line: &str, tree: &Tree) -> Result<Checkout, CheckoutError> {
        let owner = Some(tree.tenant().clone());
        let begun = Instant::now();
        while self.janitor.cleans(&owner, line) && begun.elapsed() < PATIENCE {
            sleep(PAUSE).await;
        }
        let retained = self.shelf.lock().take(tree.tenant(), line);
        if let Some(Retained {
            tree: has,
            directory,
            facts,
        }) = retained
        {
            let mut checkout = Checkout::new(directory, has, facts);
            // It is written anew if this fails.
            if checkout.update(tree).await.is_ok() {
                checkout.begun = tree.clone();
                return Ok(checkout);
            }
        }
        let directory = self.new_directory(owner, Some(line))?;
        let mut checkout = Checkout::new(directory, tree.emptied(), Arc::default());
        checkout.update(tree).await?;
        checkout.begun = tree.clone();
        Ok(checkout)
    }

    /// Makes an empty directory that belongs to no session.
    pub fn scratch_directory(&self) -> Result<ScratchDirectory, CheckoutError> {
        self.new_directory(None, None).map(ScratchDirectory)
    }

    /// Makes an empty directory.
    fn new_directory(&self, owner: Owner, line: Option<&str>) -> Result<Directory, CheckoutError> {
        let directory = Directory {
            path: self.reserve(owner.as_ref(), line)?,
            owner,
            line: line.map(str::to_owned),
            has_exact_times: self.has_exact_times,
            janitor: self.janitor.clone(),
        };
        for path in [&directory.files(), &directory.scratch()] {
            make_private(path)?;
        }
        Ok(directory)
    }

    /// Makes the folder of a directory. Forks that run at the same time get numbers.
    fn reserve(&self, owner: Option<&TenantId>, line: Option<&str>) -> Result<PathBuf, CheckoutError> {
        let name = match (owner, line) {
            (Some(tenant), Some(line)) => hash_content(format!("{tenant}\n{line}").as_bytes()),
            _ => hash_content(uuid::Uuid::now_v7().as_bytes()),
        };
        let name: String = name.to_string().chars().take(RUN_NAME_DIGITS).collect();
        let name = format!("{RUN_NAME_PREFIX}{name}");
        let mut path = self.folder.join(&name);
        let mut number = 1_u64;
        loop {
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(path),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(CheckoutError::of("creating", path)(error)),
            }
            path = self.folder.join(format!("{name}-{number}"));
        }
    }
}

impl ScratchDirectory {
    /// Returns the directory to work in.
    pub fn files(&self) -> PathBuf {
        self.0.files()
    }

    /// Returns the directory for temporary files.
    pub fn scratch(&self) -> PathBuf {
        self.0.scratch()
    }
}

impl Drop for Checkouts {
    fn drop(&mut self) {
        let mut shelf = self.shelf.lock();
        shelf.capacity = 0;
        let retained = std::mem::take(&mut shelf.retained);
        drop(shelf);
        drop(retained);
        if let Ok(Some(work)) = move_away(&self.folder) {
            self.janitor.send(work);
        }
        self.janitor.finish();
        self.janitor.close();
        // Removed while it is locked, so that a process that has just opened it notices.
        let _ = fs::remove_file(self.folder.with_extension(LOCK));
    }
}

/// Makes a directory and those above it, unless they exist, and checks that no other user can enter
/// it.
fn prepare(path: &Path) -> Result<(), CheckoutError> {
    let made = DirBuilder::new().mode(0o700).recursive(true).create(path);
    made.map_err(CheckoutError::of("creating", path))?;
    let found = fs::symlink_metadata(path).map_err(CheckoutError::of("examining", path))?;
    let is_ours = found.is_dir() && found.uid() == rustix::process::geteuid().as_raw();
    let others = found.mode() & 0o077;
    if is_ours && others == 0 {
        return Ok(());
    }
    let source = io::Error::new(
        io::ErrorKind::PermissionDenied,
        "it must be a directory that belongs to the user of the service, with the mode 0700",
    );
    Err(CheckoutError::of("using", path)(source))
}

/// Chooses the first free folder for this process, and locks it before it exists.
fn lock_folder(root: &Path) -> Result<(PathBuf, File), CheckoutError> {
    let mut number = 0_u64;
    loop {
        let folder = root.join(number.to_string());
        let path = folder.with_extension(LOCK);
        let failed = |error: io::Error| CheckoutError::of("locking", &path)(error);
        let lock = File::create(&path).map_err(failed)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            // Another process may have removed the file, since it has found it free.
            Ok(()) if lock.metadata().map_err(failed)?.nlink() > 0 => return Ok((folder, lock)),
            Ok(()) => (),
            Err(_) => number += 1,
        }
    }
}

/// Gives a folder another name, so that its own is free while it is removed. Its lock must be held.
/// Returns how it is removed, if it exists.
fn move_away(folder: &Path) -> Result<Option<Work>, CheckoutError> {
    if !folder.exists() {
        return Ok(None);
    }
    let moved = folder.with_file_name(uuid::Uuid::now_v7().to_string());
    let lock = moved.with_extension(LOCK);
    File::create(&lock).map_err(CheckoutError::of("creating", &lock))?;
    fs::rename(folder, &moved).map_err(CheckoutError::of("moving", folder))?;
    Ok(Some(Work::RemoveFolder { folder: moved, lock }))
}

/// Removes the folders of processes that have ended: those whose lock is free.
fn remove_abandoned(root: &Path, janitor: &Janitor) -> Result<(), CheckoutError> {
    let listed: io::Result<Vec<_>> = fs::read_dir(root).and_then(Iterator::collect);
    // Moving one makes entries, so they are listed before.
    for entry in listed.map_err(CheckoutError::of("listing", root))? {
        let path = entry.path();
        let lock = File::open(&path)
            .ok()
            .filter(|_| path.extension() == Some(LOCK.as_ref()));
        let Some(lock) = lock else { continue };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        // Moved and removed while it is locked here: the next process of the name makes a folder of
        // its own. An error means that another process was faster.
        if let Ok(work) = move_away(&path.with_extension("")) {
            if let Some(work) = work {
                janitor.send(work);
            }
            drop(fs::remove_file(&path));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_of_an_ended_process_is_removed_but_not_that_of_the_next_one_of_its_name() {
        let root = tempfile::tempdir().unwrap();
        let janitor = Janitor::start(|_| None);
        let (folder, lock) = lock_folder(root.path()).unwrap();
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("old"), "").unwrap();
        drop(lock);
        remove_abandoned(root.path(), &janitor).unwrap();
        let (next, _lock) = lock_folder(root.path()).unwrap();
        assert_eq!(next, folder);
        fs::create_dir(&next).unwrap();
        janitor.finish();
        let entries = fs::read_dir(root.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["0", "0.lock"]);
        assert_eq!(fs::read_dir(next).unwrap().count(), 0);
    }
}
