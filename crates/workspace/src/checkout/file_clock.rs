//! The clock of the file system, which the times of files come from.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{Timespec, Timestamps, UTIME_NOW};

use super::facts::{Fact, Time};

/// How long to wait before the clock is read again.
const TICK: Duration = Duration::from_millis(1);
/// A clock that was not set back passes the times of files sooner.
const MAX_TICKS: usize = 50;

/// Returns the time that the file system gives a file which changes now. Changes the given one.
pub(super) fn file_time(probe: &Path) -> io::Result<Time> {
    let file = File::options().create(true).append(true).open(probe)?;
    // A full disk has no room for a byte.
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    rustix::fs::futimens(&file, &times)?;
    Ok(Fact::of(&rustix::fs::fstat(&file)?).changed())
}

/// The time of a file whose time is unknown: older than all changes, but not so old that archives
/// can't have it. 1980-01-02.
pub(super) const UNKNOWN: u64 = 315_619_200_000_000_000;

/// Gives a file the time at which its content last changed.
pub(super) fn set_modified(file: impl AsFd, modified: u64) -> io::Result<()> {
    let modified = modified.max(UNKNOWN);
    let time = Timespec {
        tv_sec: i64::try_from(modified / 1_000_000_000).unwrap_or_default(),
        tv_nsec: (modified % 1_000_000_000).try_into().unwrap_or_default(),
    };
    let times = Timestamps {
        last_access: time,
        last_modification: time,
    };
    Ok(rustix::fs::futimens(file, &times)?)
}

/// Waits until the clock has passed the time of the newest file, and returns its time. So every
/// later change shows in the times of its file. If the clock was set back, returns an earlier time,
/// and the next scan reads the files again that are newer.
pub(super) fn file_time_after(newest: Time, probe: &Path) -> io::Result<Time> {
    let mut now = file_time(probe)?;
    for _ in 0..MAX_TICKS {
        if now > newest {
            break;
        }
        thread::sleep(TICK);
        now = file_time(probe)?;
    }
    Ok(now)
}
