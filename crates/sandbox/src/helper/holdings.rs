//! Measures resources of processes that neither a directory nor their own memory shows: removed
//! files, shared memory that is in no page table, and memory of the kernel.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::ErrorKind;

use rustix::fs::{AtFlags, CWD, FileType, Stat};
use rustix::process::Pid;

use super::calls::SHARED_BYTES;
use super::processes;

/// An empty file costs the host about this much.
pub(super) const SMALLEST_FILE: u64 = 4 << 10;
/// The most that the messages in a socket take up, as Linux has it by default.
const SOCKET_BYTES: u64 = 416 << 10;
/// A mapping costs the kernel about this much.
const MAPPING_BYTES: u64 = 256;
/// The name that the kernel shows for shared memory without a file.
const SHARED_MEMORY: &str = "/dev/zero (deleted)";
/// The beginnings of the names of other memory. Only commands without isolation can have it.
const OTHER_MEMORY: [&str; 3] = ["/memfd:", "/SYSV", "/["];

/// The memory and disk that processes hold, in bytes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Holdings {
    /// Files that no directory lists.
    pub(super) disk: u64,
    pub(super) memory: u64,
    /// The inodes of all that was counted.
    seen: HashSet<u64>,
    /// Where the mapped part of a removed file ends, by inode.
    mapped: HashMap<u64, u64>,
}

impl Holdings {
    /// Measures until there is more memory than `max_memory`.
    pub(super) fn of(processes: &[Pid], max_memory: u64) -> Self {
        let mut held = Self::default();
        for pid in processes {
            held.add_open_files(*pid);
        }
        // Afterwards, since the size of a file is known only if it is open.
        for pid in processes {
            if held.memory > max_memory {
                break;
            }
            // The kernel shows them even of paths that are no text.
            let mappings = fs::read(format!("/proc/{pid}/maps")).unwrap_or_default();
            held.add_mappings(&String::from_utf8_lossy(&mappings));
        }
        held.disk = held
            .mapped
            .values()
            .fold(held.disk, |sum, bytes| sum.saturating_add(*bytes));
        held
    }

    fn add_open_files(&mut self, pid: Pid) {
        let files = fs::read_dir(format!("/proc/{pid}/fd"));
        if let Err(error) = &files
            && error.kind() == ErrorKind::PermissionDenied
            && processes::read(pid).is_some_and(|now| now.has_memory() && now.shown_by == pid)
        {
            // Its program can't be read, so the kernel does not show its files.
            self.disk = u64::MAX;
            return;
        }
        for file in files.into_iter().flatten().flatten() {
            let Ok(stat) = rustix::fs::statat(CWD, file.path(), AtFlags::empty()) else {
                continue;
            };
            let kind = FileType::from_raw_mode(stat.st_mode);
            let is_unlisted = kind.is_file() && stat.st_nlink == 0;
            if is_unlisted && self.seen.insert(stat.st_ino) {
                self.disk = self.disk.saturating_add(space(&stat));
            } else if kind.is_socket() && self.seen.insert(stat.st_ino) {
                self.memory = self.memory.saturating_add(SOCKET_BYTES);
            }
        }
    }

    /// Adds the mappings that `/proc/PID/maps` lists: `BEGIN-END RIGHTS OFFSET DEVICE INODE PATH`.
    fn add_mappings(&mut self, maps: &str) {
        for line in maps.lines() {
            self.memory = self.memory.saturating_add(MAPPING_BYTES);
            if line.ends_with(" (deleted)") {
                self.add_deleted(line);
            }
        }
    }

    fn add_deleted(&mut self, line: &str) -> Option<()> {
        let mut fields = line.splitn(6, ' ');
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let (begin, end) = fields.next()?.split_once('-')?;
        let is_shared = fields.next()?.ends_with('s');
        let offset = hex(fields.next()?)?;
        let inode = fields.nth(1)?.parse().ok()?;
        let path = fields.next()?.trim_start();
        if path == SHARED_MEMORY {
            if is_shared && self.seen.insert(inode) {
                self.memory = self.memory.saturating_add(SHARED_BYTES);
            }
        } else if !OTHER_MEMORY.iter().any(|other| path.starts_with(other)) && !self.seen.contains(&inode) {
            // The kernel does not tell its size, so all up to the last mapped byte counts.
            let end = offset.saturating_add(hex(end)?.saturating_sub(hex(begin)?));
            let known = self.mapped.entry(inode).or_default();
            *known = end.max(*known);
        }
        Some(())
    }
}

/// Returns the space that a file takes up.
pub(super) fn space(stat: &Stat) -> u64 {
    u64::try_from(stat.st_blocks)
        .unwrap_or_default()
        .saturating_mul(512)
        .max(SMALLEST_FILE)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

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
        let held = Holdings::of(&[Pid::from_child(&holder)], u64::MAX);
        holder.kill().unwrap();
        holder.wait().unwrap();
        assert!((8_000_000..8_100_000).contains(&held.disk), "{held:?}");
    }

    #[test]
    fn mappings_count_once_for_all_processes() {
        let maps = "\
7f0000000000-7f0000001000 rw-s 00000000 00:01 7    /dev/zero (deleted)
7f0000002000-7f0000003000 rw-s 00001000 00:01 7    /dev/zero (deleted)
7f0000004000-7f0000006000 r--p 00003000 fd:00 9    /w/a b (deleted)
7f0000006000-7f0000007000 r--p 00000000 fd:00 9    /w/a b (deleted)
7f0000008000-7f0000009000 r--p 00000000 fd:00 11   /w/open (deleted)
7f000000a000-7f000000b000 r--p 00000000 fd:00 12   /w/listed
7f000000c000-7f000000d000 rw-p 00000000 00:00 0
7f000000e000-7f000000f000 rw-s 00000000 00:01 13   /memfd:x (deleted)
";
        let mut held = Holdings {
            seen: [11].into(),
            ..Holdings::default()
        };
        held.add_mappings(maps);
        held.add_mappings(maps);
        assert_eq!(held.memory, SHARED_BYTES + 16 * MAPPING_BYTES);
        assert_eq!(held.mapped, [(9, 0x5000)].into());
    }
}
