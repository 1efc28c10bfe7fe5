//! Measures how much the directories of a command have grown, on a thread of its own.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, AsRawFd as _};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::Pid;

use super::processes;

/// The thread measures for no more than a tenth of the time, within these bounds.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// An empty file costs the host about this much.
const SMALLEST_FILE: u64 = 4 << 10;
/// A further name of a file costs this much at most.
const NAME: u64 = 256;
/// No usual tree is deeper. A deeper one counts as one that fills the disk.
const MAX_DEPTH: usize = 256;

/// Measures in the background until it is dropped.
#[derive(Debug)]
pub(super) struct DiskWatch {
    growth: Arc<AtomicU64>,
    /// Their open files count too, even if no directory lists them any more.
    processes: Arc<Mutex<Vec<Pid>>>,
    /// Its end stops the thread.
    _running: Sender<()>,
    is_ready: Receiver<()>,
}

impl DiskWatch {
    /// Starts to measure what is there, and then the growth. It is exact up to the limit.
    pub(super) fn start(directories: Vec<PathBuf>, limit: u64) -> Self {
        let (running, stop) = channel::<()>();
        let (ready, is_ready) = channel::<()>();
        let (growth, processes) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Vec::new())));
        let watch = Self {
            growth: Arc::clone(&growth),
            processes: Arc::clone(&processes),
            _running: running,
            is_ready,
        };
        thread::spawn(move || {
            let measured = |at_most| {
                let processes = processes.lock().unwrap_or_else(PoisonError::into_inner).clone();
                measure(&directories, at_most).saturating_add(unlisted(&processes))
            };
            let before = measured(u64::MAX);
            drop(ready);
            loop {
                let started = Instant::now();
                let now = measured(before.saturating_add(limit));
                growth.store(now.saturating_sub(before), Ordering::Relaxed);
                let pause = (started.elapsed() * 10).clamp(SHORTEST_PAUSE, LONGEST_PAUSE);
                if stop.recv_timeout(pause) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        watch
    }

    /// Waits until what is there is measured, or some time has passed. What a command writes before
    /// that may not count as growth.
    pub(super) fn wait_until_ready(&self, at_most: Duration) {
        // The sender is dropped then.
        let _ = self.is_ready.recv_timeout(at_most);
    }

    /// Returns the growth in bytes, as last measured.
    pub(super) fn growth(&self) -> u64 {
        self.growth.load(Ordering::Relaxed)
    }

    pub(super) fn set_processes(&self, processes: Vec<Pid>) {
        *self.processes.lock().unwrap_or_else(PoisonError::into_inner) = processes;
    }
}

/// Returns the space that directories take up. Stops once that is more than `at_most`.
fn measure(directories: &[PathBuf], at_most: u64) -> u64 {
    let mut walk = Walk {
        total: 0,
        at_most,
        linked: HashSet::new(),
    };
    for directory in directories {
        walk.enter(CWD, directory, 0);
    }
    walk.total
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A walk through directories.
struct Walk {
    total: u64,
    at_most: u64,
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
            // It was removed, or belongs to somebody else.
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

fn space(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks)
        .unwrap_or_default()
        .saturating_mul(512)
        .max(SMALLEST_FILE)
}

/// Returns the space of files that these processes have open and that no directory lists.
fn unlisted(processes: &[Pid]) -> u64 {
    let mut seen = HashSet::new();
    let mut total = 0_u64;
    for pid in processes {
        let files = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd"));
        if let Err(error) = &files
            && error.kind() == ErrorKind::PermissionDenied
            && processes::read(*pid).is_some_and(|now| now.has_memory() && now.shown_by == *pid)
        {
            // Its program can't be read, so the kernel does not show its files.
            return u64::MAX;
        }
        for file in files.into_iter().flatten().flatten() {
            let Ok(stat) = rustix::fs::statat(CWD, file.path(), AtFlags::empty()) else {
                continue;
            };
            let is_unlisted = FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_nlink == 0;
            if is_unlisted && seen.insert((stat.st_dev, stat.st_ino)) {
                total = total.saturating_add(space(&stat));
            }
        }
    }
    total
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use rustix::process::Pid;

    use super::*;

    #[test]
    fn each_file_counts_once_and_empty_ones_count() {
        let directory = tempfile::tempdir().unwrap();
        let measure = || measure(&[directory.path().to_owned()], u64::MAX);
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

    #[test]
    fn a_removed_file_counts_while_it_is_open() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let mut file = File::create(&path).unwrap();
        fs::remove_file(&path).unwrap();
        file.write_all(&vec![1; 8_000_000]).unwrap();
        file.sync_all().unwrap();
        // Has no other file without a name, unlike this process with its other tests.
        let mut holder = Command::new("sleep");
        holder.arg("60").stdin(file).stdout(Stdio::null()).stderr(Stdio::null());
        let mut holder = holder.spawn().unwrap();
        let held = unlisted(&[Pid::from_child(&holder)]);
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!((8_000_000..8_100_000).contains(&held), "{held}");
    }
}
