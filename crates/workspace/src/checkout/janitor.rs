//! The directories on disk, and the thread that cleans, retains and removes them.
//!
//! It works on each directory for a limited number of files, and then on the next one. So a
//! directory with millions of files does not delay the removal of others.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;

use super::beneath::open_root;
use super::cleaning::restore;
use super::facts::{Fact, Facts};
use super::file_clock::file_time_after;
use super::level::Level;
use super::removal::{Budget, remove_within};
use crate::Tree;
use crate::command_paths::RUN_FILES;
use values::tenant::TenantId;

/// How long the end of the process waits for the janitor.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a directory that is not empty yet is removed again, and the pause before.
const ATTEMPTS: u32 = 10;
const PAUSE: Duration = Duration::from_millis(50);
/// How many files are removed in a turn.
const TURN: u64 = 10_000;

/// The name of the directory for temporary files.
const SCRATCH: &str = "scratch";

/// Whose directory it is; `None` for one of the service.
pub(super) type Owner = Option<TenantId>;

/// A directory on disk. It is removed when it is dropped.
#[derive(Debug)]
pub(super) struct Directory {
    /// Empty once the directory was taken.
    pub(super) path: PathBuf,
    pub(super) owner: Owner,
    /// The line of sessions that it belongs to, if it belongs to any.
    pub(super) line: Option<String>,
    /// Whether each change of a file shows in its times.
    pub(super) has_exact_times: bool,
    pub(super) janitor: Janitor,
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
pub(super) struct Janitor(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    /// `None` once the process ends.
    sender: Mutex<Option<Sender<Work>>>,
    /// The directories that will be retained when they are clean.
    cleaned: Mutex<Vec<Weak<Cleaned>>>,
}

/// The owner and the line of a directory that is being cleaned. Dropped once the next run can take
/// the directory, or never will.
type Cleaned = (Owner, Option<String>);

/// A task of the janitor.
#[derive(Debug)]
pub(super) enum Work {
    Remove(PathBuf),
    /// Remove the folder of a process, and then the file that it has locked.
    RemoveFolder {
        folder: PathBuf,
        lock: PathBuf,
    },
    Retain(Box<Retained>, Arc<Cleaned>),
    /// Say that no work is left.
    Report(Sender<()>),
}

impl Directory {
    /// Returns the directory where commands find the files.
    pub(super) fn files(&self) -> PathBuf {
        self.path.join(RUN_FILES)
    }

    /// Opens it to read and write the files.
    pub(super) fn open(&self) -> io::Result<Level> {
        Level::open(&self.files())
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
            owner: self.owner.clone(),
            line: self.line.clone(),
            has_exact_times: self.has_exact_times,
            janitor: self.janitor.clone(),
        }
    }

    /// Retains the directory for the next run that begins with this tree. Removes it if it can't be
    /// made like a new one: a file with several names would have to be copied.
    pub(super) fn retain(self, tree: &Tree, facts: Arc<Facts>) {
        let Some(tree) = unloaded(tree) else {
            return;
        };
        if facts.files.values().any(Fact::is_linked) {
            return;
        }
        let janitor = self.janitor.clone();
        let cleaned = Arc::new((self.owner.clone(), self.line.clone()));
        janitor.note(Arc::downgrade(&cleaned));
        let retained = Retained {
            tree,
            directory: self,
            facts,
        };
        janitor.send(Work::Retain(Box::new(retained), cleaned));
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.path.as_os_str().is_empty() || self.janitor.is_closed() {
            return;
        }
        // Its name is free at once for the next directory of the line.
        let moved = self.path.with_file_name(uuid::Uuid::now_v7().to_string());
        let path = match fs::rename(&self.path, &moved) {
            Ok(()) => moved,
            Err(_) => self.path.clone(),
        };
        self.janitor.send(Work::Remove(path));
    }
}

impl Janitor {
    /// Starts the thread. `retain` takes a clean directory, and returns the directory for which
    /// there is no room.
    pub(super) fn start(retain: impl Fn(Retained) -> Option<Retained> + Send + 'static) -> Self {
        let (sender, receiver) = channel();
        let shared = Arc::new(Shared {
            sender: Mutex::new(Some(sender)),
            cleaned: Mutex::default(),
        });
        // The thread ends with the last sender.
        thread::spawn(move || take_turns(&receiver, retain));
        Self(shared)
    }

    /// Waits until no work is left, but not for long: the next process does the rest.
    pub(super) fn finish(&self) {
        let (sender, receiver) = channel();
        self.send(Work::Report(sender));
        let _ = receiver.recv_timeout(PATIENCE);
    }

    /// Ends the thread once its work is done. From now on, directories are left where they are: the
    /// folder that they were in is being removed, and another process may have its name.
    pub(super) fn close(&self) {
        *self.0.sender.lock() = None;
    }

    fn is_closed(&self) -> bool {
        self.0.sender.lock().is_none()
    }

    /// Returns whether a directory of a line will be retained soon.
    pub(super) fn cleans(&self, owner: &Owner, line: &str) -> bool {
        let cleaned = self.0.cleaned.lock();
        let mut cleaned = cleaned.iter().filter_map(Weak::upgrade);
        cleaned.any(|one| one.0 == *owner && one.1.as_deref() == Some(line))
    }

    fn note(&self, cleaned: Weak<Cleaned>) {
        let mut all = self.0.cleaned.lock();
        all.retain(|one| one.strong_count() > 0);
        all.push(cleaned);
    }

    pub(super) fn send(&self, work: Work) {
        if let Some(sender) = &*self.0.sender.lock() {
            // Without the thread, the next process removes the directory.
            let _ = sender.send(work);
        }
    }
}

/// Does all work, until all senders are gone.
fn take_turns(receiver: &Receiver<Work>, retain: impl Fn(Retained) -> Option<Retained>) {
    let mut waiting = VecDeque::new();
    let mut reporters: Vec<Sender<()>> = Vec::new();
    loop {
        let received = if waiting.is_empty() {
            for reporter in reporters.drain(..) {
                let _ = reporter.send(());
            }
            match receiver.recv() {
                Ok(work) => Some(work),
                Err(_) => return,
            }
        } else {
            receiver.try_recv().ok()
        };
        match received {
            Some(Work::Report(reporter)) => reporters.push(reporter),
            Some(work) => waiting.push_back(work),
            None => take_next(&mut waiting, &retain),
        }
    }
}

/// Gives the next work a turn. The rest of it waits for its next turn behind all others.
fn take_next(waiting: &mut VecDeque<Work>, retain: impl Fn(Retained) -> Option<Retained>) {
    let rest = waiting.pop_front().and_then(|work| take_turn(work, retain));
    waiting.extend(rest);
}

/// Does work as far as a turn goes. Returns the rest of it.
fn take_turn(mut work: Work, retain: impl Fn(Retained) -> Option<Retained>) -> Option<Work> {
    let mut budget = Budget::new(TURN);
    let (path, removed) = match &mut work {
        Work::Report(_) => return None,
        Work::Remove(path) => (&*path, remove_used(path, &mut budget)),
        Work::RemoveFolder { folder, lock } => {
            let removed = remove_used(folder, &mut budget);
            (&*folder, removed.and_then(|()| remove_path(lock, &mut budget)))
        }
        Work::Retain(retained, _) => {
            let cleaned = clean(retained, &mut budget);
            (&retained.directory.path, cleaned)
        }
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Some(work),
        Err(error) if is_removed(path, &error) => (),
        Err(error) => log_failure(path, &error),
        Ok(()) => {
            if let Work::Retain(retained, _cleaned) = work {
                drop(retain(*retained));
            }
        }
    }
    None
}

/// Makes a directory as it would be if its tree was written anew.
///
/// Removing a file changes the times of its directory, and of no file. Only a new mode or time
/// changes the times of its file.
fn clean(retained: &mut Retained, budget: &mut Budget) -> io::Result<()> {
    let directory = &retained.directory;
    let changed = restore(&directory.open()?, &retained.facts, budget)?;
    restore(&Level::open(&directory.scratch())?, &Facts::default(), budget)?;
    if let Some(newest) = changed.values().map(Fact::changed).max() {
        let scanned_at = file_time_after(newest, &directory.probe())?;
        let facts = Arc::make_mut(&mut retained.facts);
        facts.files.extend(changed);
        facts.touched.clear();
        facts.scanned_at = scanned_at;
    }
    Ok(())
}

/// Returns a saved tree without its loaded parts, so that it takes up no memory.
fn unloaded(tree: &Tree) -> Option<Tree> {
    let (contents, limits) = tree.source();
    Some(Tree::open(contents, limits, tree.hash()?))
}

/// Returns whether a directory is gone already: at the end of a process, another part of it removes
/// all of its directories.
fn is_removed(path: &Path, error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound && matches!(path.try_exists(), Ok(false))
}

fn log_failure(path: &Path, error: &io::Error) {
    let error = error as &dyn std::error::Error;
    tracing::warn!(path = %path.display(), error, "a directory of a run can't be cleaned or removed");
}

/// Removes a directory. Processes that are being killed may still write to it, so this tries again
/// for a while.
fn remove_used(path: &Path, budget: &mut Budget) -> io::Result<()> {
    for _ in 0..ATTEMPTS {
        match remove_path(path, budget) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => thread::sleep(PAUSE),
            removed => return removed,
        }
    }
    remove_path(path, budget)
}

fn remove_path(path: &Path, budget: &mut Budget) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Ok(());
    };
    match open_root(parent) {
        Ok(parent) => remove_within(parent, name, budget),
        // It was removed with the folder of the process.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_with_many_files_takes_several_turns() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("many");
        fs::create_dir(&path).unwrap();
        for number in 0..TURN + 10 {
            fs::File::create(path.join(number.to_string())).unwrap();
        }
        let rest = take_turn(Work::Remove(path.clone()), |_| None);
        let left = fs::read_dir(&path).unwrap().count();
        assert!((10..20).contains(&left), "{left}");
        assert!(take_turn(rest.unwrap(), |_| None).is_none());
        assert!(!path.exists());
    }

    #[test]
    fn a_directory_with_many_files_does_not_delay_the_removal_of_another() {
        let root = tempfile::tempdir().unwrap();
        let (many, few) = (root.path().join("many"), root.path().join("few"));
        for (path, count) in [(&many, 2 * TURN + 10), (&few, 1)] {
            fs::create_dir(path).unwrap();
            for number in 0..count {
                fs::File::create(path.join(number.to_string())).unwrap();
            }
        }
        let mut waiting: VecDeque<_> = [&many, &few].map(|path| Work::Remove(path.clone())).into();
        for _ in 0..2 {
            take_next(&mut waiting, |_| None);
        }
        assert!(many.exists() && !few.exists());
        assert_eq!(waiting.len(), 1);
    }

    #[test]
    fn a_directory_that_is_gone_is_no_failure_but_a_missing_part_of_it_is() {
        let root = tempfile::tempdir().unwrap();
        let missing = io::Error::from(io::ErrorKind::NotFound);
        assert!(is_removed(&root.path().join("gone"), &missing));
        assert!(!is_removed(root.path(), &missing));
        assert!(!is_removed(
            &root.path().join("gone"),
            &io::Error::from(io::ErrorKind::PermissionDenied)
        ));
    }
}
