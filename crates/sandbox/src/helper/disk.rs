//! Measures how much the directories of a command have grown, on a thread of its own.
//!
//! A command can move directories so that a walk finds them nowhere. It can't hide that the file
//! system has less room. If that is more than the walk has found, or if walks miss directories
//! again and again, the processes stand still for another walk.

use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, AsRawFd as _};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;

use super::super::command::SandboxLimits;
use super::holdings::{Holdings, space};
use super::killing::Standstill;

/// The thread measures for no more than a tenth of the time, within these bounds.
const WATCH_SHARE: u32 = 10;
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// The processes stand still after more walks in a row that miss a directory.
const MAX_INCOMPLETE: u32 = 2;
/// A directory that moves before it is measured, in so many measurements in a row, counts as a full
/// disk. Another command of the run moves it then.
const MAX_MOVING: u32 = 20;
/// A further name of a file costs this much at most.
const NAME: u64 = 256;
/// No usual tree is deeper. A deeper one counts as a full disk.
const MAX_DEPTH: usize = 256;

/// Measures in the background until it is dropped.
#[derive(Debug)]
pub(super) struct DiskWatch {
    measured: Arc<Measured>,
    /// The processes, whose open files count too, even if no directory lists them any more.
    processes: Arc<Mutex<Vec<Pid>>>,
    /// Its end stops the thread.
    _running: Sender<()>,
    is_ready: Receiver<()>,
}

/// The last measurement, in bytes.
#[derive(Debug, Default)]
struct Measured {
    growth: AtomicU64,
    held_memory: AtomicU64,
}

impl DiskWatch {
    /// Starts to measure the existing files, and then the growth. It is exact up to the limit. If
    /// `files_bytes` is given, only so many of the existing bytes do not count as growth.
    pub(super) fn start(directories: Vec<PathBuf>, files_bytes: Option<u64>, limits: &SandboxLimits) -> Self {
        let (running, stop) = channel::<()>();
        let (ready, is_ready) = channel::<()>();
        let (measured, processes) = (Arc::<Measured>::default(), Arc::new(Mutex::new(Vec::new())));
        let watch = Self {
            measured: Arc::clone(&measured),
            processes: Arc::clone(&processes),
            _running: running,
            is_ready,
        };
        let (limit, max_memory) = (limits.disk_bytes, limits.memory_bytes);
        thread::spawn(move || {
            let mut room = Room::begin(directories, files_bytes, limit);
            drop(ready);
            loop {
                let started = Instant::now();
                let processes = processes.lock().unwrap_or_else(PoisonError::into_inner).clone();
                let held = Holdings::of(&processes, max_memory);
                measured.held_memory.store(held.memory, Ordering::Relaxed);
                let (now, stood_still) = room.measure(held.disk);
                measured.growth.store(now.saturating_sub(room.base), Ordering::Relaxed);
                let share = if stood_still { 2 * WATCH_SHARE } else { WATCH_SHARE };
                let pause = (started.elapsed() * share).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                if stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        watch
    }

    /// Waits until the existing files are measured, or some time has passed. Bytes that a command
    /// writes before that may not count as growth.
    pub(super) fn wait_until_ready(&self, at_most: Duration) {
        // The sender is dropped then.
        let _ = self.is_ready.recv_timeout(at_most);
    }

    /// Returns the growth in bytes, as last measured.
    pub(super) fn growth(&self) -> u64 {
        self.measured.growth.load(Ordering::Relaxed)
    }

    /// Returns the memory that the processes hold besides their own, as last measured.
    pub(super) fn held_memory(&self) -> u64 {
        self.measured.held_memory.load(Ordering::Relaxed)
    }

    pub(super) fn set_processes(&self, processes: Vec<Pid>) {
        *self.processes.lock().unwrap_or_else(PoisonError::into_inner) = processes;
    }
}

/// The room of a command, and the results of the last measurements.
struct Room {
    directories: Vec<PathBuf>,
    /// The bytes at the beginning.
    before: u64,
    /// The bytes that do not count as growth.
    base: u64,
    /// The most bytes.
    full: u64,
    /// How much of the file system of each directory belongs to others, at most.
    foreign: Vec<u64>,
    /// How many walks in a row have missed a directory.
    incomplete: u32,
    /// How many of them did so while the processes stood still.
    moving: u32,
}

impl Room {
    fn begin(directories: Vec<PathBuf>, files_bytes: Option<u64>, limit: u64) -> Self {
        let foreign = taken(&directories);
        let before = measure(&directories, u64::MAX).total;
        let base = files_bytes.map_or(before, |files| files.min(before));
        Self {
            directories,
            before,
            base,
            full: base.saturating_add(limit),
            foreign,
            incomplete: 0,
            moving: 0,
        }
    }

    /// Returns the used space, including space that processes hold, and whether the processes had
    /// to be stopped to measure it.
    fn measure(&mut self, held: u64) -> (u64, bool) {
        let walk = measure(&self.directories, self.full);
        self.incomplete = if walk.is_complete { 0 } else { self.incomplete + 1 };
        let now = walk.total.saturating_add(held);
        let is_short = self.is_short(now);
        if now <= self.full && (is_short || self.incomplete > MAX_INCOMPLETE) {
            (self.measure_at_standstill(held), true)
        } else {
            (now, false)
        }
    }

    /// Returns whether a file system has less room than the command may take.
    fn is_short(&mut self, now: u64) -> bool {
        let room = self.full.saturating_sub(self.before);
        let growth = now.saturating_sub(self.before);
        let mut is_short = false;
        for (foreign, taken) in self.foreign.iter_mut().zip(taken(&self.directories)) {
            is_short |= taken.saturating_sub(*foreign) > room;
            // Others may have removed files since.
            *foreign = taken.saturating_sub(growth).min(*foreign);
        }
        is_short
    }

    fn measure_at_standstill(&mut self, held: u64) -> u64 {
        let standstill = Standstill::begin();
        let walk = measure(&self.directories, self.full);
        let taken = taken(&self.directories);
        drop(standstill);
        let now = walk.total.saturating_add(held);
        if walk.is_complete {
            self.moving = 0;
            // The rest belongs to others.
            let growth = now.saturating_sub(self.before);
            self.foreign = taken.into_iter().map(|taken| taken.saturating_sub(growth)).collect();
        } else {
            self.moving += 1;
        }
        if self.moving > MAX_MOVING { u64::MAX } else { now }
    }
}

/// Returns how much of the file system of each directory is taken, by everybody.
fn taken(directories: &[PathBuf]) -> Vec<u64> {
    let taken = directories.iter().map(|directory| {
        let all = rustix::fs::statvfs(directory).ok();
        let blocks = all.map(|all| all.f_blocks.saturating_sub(all.f_bfree).saturating_mul(all.f_frsize));
        blocks.unwrap_or_default()
    });
    taken.collect()
}

/// Measures the space that directories take up. Stops once that is more than `at_most`.
fn measure(directories: &[PathBuf], at_most: u64) -> Walk {
    let mut walk = Walk {
        total: 0,
        at_most,
        is_complete: true,
        linked: HashSet::new(),
    };
    for directory in directories {
        walk.enter(CWD, directory, 0);
    }
    walk
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A walk through directories.
struct Walk {
    total: u64,
    at_most: u64,
    /// Whether each directory was still there when it was entered.
    is_complete: bool,
    /// Files with several names, which count once.
    linked: HashSet<(u64, u64)>,
}

impl Walk {
    /// Opens a directory and walks through it, even if its mode forbids that.
    fn enter<P: rustix::path::Arg + Copy>(&mut self, at: impl AsFd, name: P, depth: usize) {
        let opened = match rustix::fs::openat(&at, name, DIRECTORY, Mode::empty()) {
            Ok(directory) if is_searchable(&directory) => Ok((directory, None)),
            Ok(_) | Err(Errno::ACCESS) => Lifted::open(at, name).map(|(directory, lifted)| (directory, Some(lifted))),
            Err(error) => Err(error),
        };
        match opened {
            Ok((directory, _lifted)) => self.walk(directory, depth),
            // The command changes the mode all the time.
            Err(Errno::ACCESS) => self.total = u64::MAX,
            Err(Errno::NOENT) => self.is_complete = false,
            // The directory belongs to another user.
            Err(_) => {}
        }
    }

    /// Walks by descriptors, since the command can make paths that are too long to open.
    fn walk(&mut self, directory: OwnedFd, depth: usize) {
        if depth > MAX_DEPTH {
            self.total = u64::MAX;
            return;
        }
        let Ok(mut entries) = Dir::new(directory) else { return };
        let mut below = Vec::new();
        while let Some(Ok(entry)) = entries.read() {
            if self.total > self.at_most {
                return;
            }
            if matches!(entry.file_name().to_bytes(), b"." | b"..") {
                continue;
            }
            let Ok(at) = entries.fd() else { return };
            let stat = match rustix::fs::statat(at, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(Errno::ACCESS) => {
                    self.total = u64::MAX;
                    return;
                }
                Err(_) => continue,
            };
            if FileType::from_raw_mode(stat.st_mode).is_dir() {
                below.push(entry.file_name().to_owned());
            } else if stat.st_nlink > 1 && !self.linked.insert((stat.st_dev, stat.st_ino)) {
                self.total = self.total.saturating_add(NAME);
                continue;
            }
            self.total = self.total.saturating_add(space(&stat));
        }
        for name in below {
            let Ok(at) = entries.fd() else { return };
            self.enter(at, &*name, depth + 1);
        }
    }
}

fn is_searchable(directory: &OwnedFd) -> bool {
    rustix::fs::accessat(directory, ".", rustix::fs::Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

/// A directory whose owner may enter it while this lives.
struct Lifted {
    directory: OwnedFd,
    before: Mode,
}

impl Lifted {
    /// Opens a directory whose mode forbids that.
    fn open(at: impl AsFd, name: impl rustix::path::Arg) -> Result<(OwnedFd, Self), Errno> {
        let directory = rustix::fs::openat(at, name, DIRECTORY | OFlags::PATH, Mode::empty())?;
        let before = Mode::from_raw_mode(rustix::fs::fstat(&directory)?.st_mode);
        let lifted = Self { directory, before };
        lifted.change(before | Mode::RWXU)?;
        let opened = rustix::fs::openat(&lifted.directory, ".", DIRECTORY, Mode::empty())?;
        Ok((opened, lifted))
    }

    /// Changes the mode by the descriptor. By a path, the command could put a link in its place.
    fn change(&self, mode: Mode) -> Result<(), Errno> {
        let path = format!("/proc/self/fd/{}", self.directory.as_raw_fd());
        rustix::fs::chmod(path, mode)
    }
}

impl Drop for Lifted {
    fn drop(&mut self) {
        let now = rustix::fs::fstat(&self.directory).map(|stat| Mode::from_raw_mode(stat.st_mode));
        // Unless the command has changed it meanwhile.
        if now == Ok(self.before | Mode::RWXU) {
            let _ = self.change(self.before);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::holdings::SMALLEST_FILE;
    use super::*;

    #[test]
    fn each_file_counts_once_and_empty_ones_count() {
        let directory = tempfile::tempdir().unwrap();
        let measure = || measure(&[directory.path().to_owned()], u64::MAX).total;
        assert_eq!(measure(), 0);
        let file = directory.path().join("file");
        fs::write(&file, vec![1; 100_000]).unwrap();
        let with_one = measure();
        assert!((100_000..200_000).contains(&with_one), "{with_one}");
        fs::hard_link(&file, directory.path().join("link")).unwrap();
        std::os::unix::fs::symlink("/", directory.path().join("root")).unwrap();
        fs::create_dir(directory.path().join("below")).unwrap();
        fs::write(directory.path().join("below/empty"), "").unwrap();
        assert_eq!(measure(), with_one + 3 * SMALLEST_FILE + NAME);
    }
}
