//! The directories of this process: those in use, and those of ended runs that are retained for the
//! next run.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::FlockOperation;

use super::beneath::make_private;
use super::error::CheckoutError;
use super::janitor::{Base, Directory, Janitor, Work};
use super::level::check_upper_layers;
use super::shelf::Shelf;
use super::turns::Owner;

/// The file that a living process has locked is beside its folder and has this extension. It is
/// made before the folder and removed after it, so that a folder always has one.
const LOCK: &str = "lock";

/// The directories of this process.
#[derive(Debug)]
pub struct Checkouts {
    /// The folder of this process.
    folder: PathBuf,
    /// The lock of the folder. Dropped with the process, so that others know that it has ended.
    _lock: File,
    pub(super) shelf: Arc<Mutex<Shelf>>,
    janitor: Janitor,
    /// Whether commands can have layers over shared directories.
    pub(super) has_overlays: bool,
}

/// A directory that belongs to no session. It is removed when it is dropped.
#[derive(Debug)]
pub struct ScratchDirectory(Directory);

impl Checkouts {
    /// Makes a folder for the directories of this process below `root`, and removes those of
    /// processes that have ended. Retains at most `capacity` directories of ended runs.
    pub fn open(root: &Path, capacity: usize) -> Result<Self, CheckoutError> {
        prepare(root)?;
        let shelf = Arc::new(Mutex::new(Shelf::new(capacity)));
        let janitor = Janitor::start({
            let shelf = Arc::clone(&shelf);
            move |retained| shelf.lock().put(retained)
        });
        remove_abandoned(root, &janitor)?;
        let root = root.canonicalize().map_err(CheckoutError::of("examining", root))?;
        let (folder, lock) = lock_folder(&root)?;
        make_private(&folder)?;
        Ok(Self {
            folder,
            _lock: lock,
            shelf,
            janitor,
            has_overlays: false,
        })
    }

    /// Returns the folder of this process.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Sets whether the kernel mounts overlays for commands. They are used only if this file system
    /// can have their layers, too.
    #[must_use]
    pub fn with_overlays(mut self, has_overlays: bool) -> Self {
        self.has_overlays = has_overlays && check_upper_layers(&self.folder).is_ok();
        self
    }

    /// Makes an empty directory that belongs to no session.
    pub fn scratch_directory(&self) -> Result<ScratchDirectory, CheckoutError> {
        self.new_directory(None, None).map(ScratchDirectory)
    }

    /// Makes an empty directory, over a shared one if there is one.
    pub(super) fn new_directory(&self, owner: Owner, base: Option<Arc<Base>>) -> Result<Directory, CheckoutError> {
        let directory = Directory {
            path: self.folder.join(uuid::Uuid::now_v7().to_string()),
            base,
            owner,
            janitor: self.janitor.clone(),
        };
        for path in [&directory.path, &directory.files(), &directory.scratch()] {
            make_private(path)?;
        }
        if let Some(layers) = directory.layers() {
            make_private(&layers.upper)?;
            make_private(&layers.work)?;
        }
        Ok(directory)
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
        let work = Work::RemoveFolder {
            folder: self.folder.clone(),
            lock: self.folder.with_extension(LOCK),
        };
        self.janitor.send(None, work);
        self.janitor.finish();
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

/// Chooses a folder for this process, and locks it before it exists.
fn lock_folder(root: &Path) -> Result<(PathBuf, File), CheckoutError> {
    loop {
        let folder = root.join(uuid::Uuid::now_v7().to_string());
        let path = folder.with_extension(LOCK);
        let failed = |error: io::Error| CheckoutError::of("locking", &path)(error);
        let lock = File::create(&path).map_err(failed)?;
        // Another process may have taken the lock for that of a process that has ended.
        let is_ours = rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok()
            && lock.metadata().map_err(failed)?.nlink() > 0;
        if is_ours {
            return Ok((folder, lock));
        }
    }
}

/// Removes the folders of processes that have ended: those whose lock is free.
fn remove_abandoned(root: &Path, janitor: &Janitor) -> Result<(), CheckoutError> {
    let entries = fs::read_dir(root).map_err(CheckoutError::of("listing", root))?;
    for entry in entries {
        let path = entry.map_err(CheckoutError::of("listing", root))?.path();
        let lock = File::open(&path)
            .ok()
            .filter(|_| path.extension() == Some(LOCK.as_ref()));
        let Some(lock) = lock else { continue };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let folder = path.with_extension("");
        if folder.exists() {
            janitor.send(None, Work::RemoveFolder { folder, lock: path });
        } else {
            // Removed while it is locked here, so that a process that has just made it notices.
            drop(fs::remove_file(&path));
        }
    }
    Ok(())
}
