//! Live directories, in which the processes of background jobs write at any time: between the scans
//! and during them.
//!
//! A scan may read a file in the middle of a change. The next scan reads it again, since the file
//! has changed since the scan before began. The first scan without processes reads all files again
//! that have changed since the first process began.

use std::io;
use std::thread;
use std::time::Duration;

use rustix::io::Errno;

use super::error::CheckoutError;
use super::facts::LiveDirectory;
use super::find::{SkippedFiles, is_gone};
use super::run_directory::Checkout;
use super::scan::Scanned;
use values::path_patterns::PathPatterns;

/// How often a change is tried that the processes of a live directory come between.
const MAX_ATTEMPTS: usize = 100;
/// The pause between two attempts. Without one, a process that does the same thing over and over
/// could come between in each attempt at the same point.
const PAUSE: Duration = Duration::from_micros(100);

impl Checkout {
    /// Begins a time in which processes may write at any time.
    pub async fn begin_live(&mut self, ephemeral: &PathPatterns) -> Result<(), CheckoutError> {
        self.is_known = false;
        if self.live.is_none() {
            self.live = Some(LiveDirectory {
                since: self.time().await?,
                ephemeral: ephemeral.clone(),
            });
        }
        Ok(())
    }

    /// Returns whether processes may write at any time, or have written since the last scan.
    pub fn is_live(&self) -> bool {
        self.live.is_some()
    }

    /// Finds the changes by processes of a live directory. If none is left, the directory is live
    /// no longer.
    pub async fn rescan(&mut self, are_left: bool) -> Result<Scanned, CheckoutError> {
        let Some(live) = self.live.clone() else {
            return Ok(Scanned {
                tree: self.tree.clone(),
                skipped: SkippedFiles::default(),
            });
        };
        if !are_left {
            self.live = None;
            // A process may change a file that it has mapped, and its times do not change then.
            let facts = self.facts_mut();
            facts.scanned_at = facts.scanned_at.min(live.since);
        }
        self.scan(&live.ephemeral).await
    }
}

/// Changes a path. Tries again if it is of another kind or no longer empty, since a process may
/// have changed it at the same time.
pub(super) fn until_done<T>(mut change: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    for _ in 1..MAX_ATTEMPTS {
        match change() {
            Err(error) if is_gone(&error) || is_moved(&error) => thread::sleep(PAUSE),
            done => return done,
        }
    }
    change()
}

/// Returns whether something else is at a path by now, or a directory that was opened is elsewhere.
fn is_moved(error: &io::Error) -> bool {
    let moved = [Errno::EXIST, Errno::NOTEMPTY, Errno::ISDIR, Errno::XDEV, Errno::AGAIN];
    Errno::from_io_error(error).is_some_and(|errno| moved.contains(&errno))
}
