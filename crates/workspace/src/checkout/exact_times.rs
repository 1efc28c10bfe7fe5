//! Finds out whether every change of a file shows in its times.
//!
//! File systems in memory do not notice that a process writes to a page that it has mapped and
//! read. Neither do file systems that lie over one. No list of names is complete, so it is tried
//! out.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use vm_memory::{FileOffset, MmapRegion, VolatileMemory as _};

use super::facts::{Fact, Time};
use super::file_clock::file_time_after;

const SIZE: usize = 4096;

/// Returns whether the file system of a folder gives a file a new time for each change, also for
/// one through a mapping. Where that can't be found out, it does not.
pub(super) fn has_exact_times(folder: &Path) -> bool {
    let probe = folder.join("mapped");
    let is_exact = changes_time(&probe, &folder.join("clock"));
    // The folder is removed with all that is left in it.
    let _ = fs::remove_file(&probe);
    is_exact.unwrap_or(false)
}

fn changes_time(path: &Path, clock: &Path) -> io::Result<bool> {
    let file = File::options().create_new(true).read(true).write(true).open(path)?;
    file.set_len(SIZE as u64)?;
    let region = MmapRegion::<()>::from_file(FileOffset::new(file.try_clone()?, 0), SIZE);
    let region = region.map_err(io::Error::other)?;
    let memory = region.as_volatile_slice();
    // Once it was read, the page is there, and a write to it need not ask the file system.
    memory.copy_to(&mut [0_u8; SIZE]);
    let before = times(&file)?;
    file_time_after(before.1, clock)?;
    memory.copy_from(&[1_u8; SIZE]);
    let after = times(&file)?;
    Ok(after.0 > before.0 && after.1 > before.1)
}

fn times(file: &File) -> io::Result<(Time, Time)> {
    let fact = Fact::of(&rustix::fs::fstat(file)?);
    Ok((fact.modified(), fact.changed()))
}
