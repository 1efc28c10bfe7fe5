//! tar, compressed with zstd.

use std::io;
use std::mem::take;

use tar::{Builder, EntryType, Header};
use zstd::Encoder;

use workspace::{Entry, FilePath};

/// The level of compression: fast, since files are compressed while they are sent.
const LEVEL: i32 = 3;

/// A compressed tar in memory.
pub(super) struct TarWriter(Builder<Encoder<'static, Vec<u8>>>);

impl TarWriter {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self(Builder::new(Encoder::new(Vec::new(), LEVEL)?)))
    }

    pub(super) fn add(&mut self, path: &FilePath, entry: &Entry, bytes: &[u8]) -> io::Result<()> {
        let mut header = Header::new_gnu();
        let modified = match entry {
            Entry::File { modified, .. } => *modified,
            Entry::Symlink { .. } | Entry::Directory { .. } => 0,
        };
        let (seconds, nanoseconds) = (modified / 1_000_000_000, modified % 1_000_000_000);
        header.set_mtime(seconds);
        if nanoseconds > 0 {
            // The header has no room for parts of a second, which the order of files may depend on.
            let time = format!("{seconds}.{nanoseconds:09}");
            self.0.append_pax_extensions([("mtime", time.as_bytes())])?;
        }
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(bytes.len() as u64);
        match entry {
            Entry::File { is_executable, .. } => {
                header.set_mode(if *is_executable { 0o755 } else { 0o644 });
                self.0.append_data(&mut header, path.as_str(), bytes)
            }
            Entry::Symlink { target } => {
                header.set_entry_type(EntryType::Symlink);
                header.set_mode(0o777);
                // `append_link` writes long targets as they are, but others without a `//` or `/./`
                // inside.
                if header.set_link_name_literal(target).is_ok() {
                    self.0.append_data(&mut header, path.as_str(), io::empty())
                } else {
                    self.0.append_link(&mut header, path.as_str(), target)
                }
            }
            Entry::Directory { .. } => {
                header.set_entry_type(EntryType::Directory);
                header.set_mode(0o755);
                self.0.append_data(&mut header, format!("{path}/"), io::empty())
            }
        }
    }

    pub(super) fn written(&self) -> usize {
        self.0.get_ref().get_ref().len()
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        take(self.0.get_mut().get_mut())
    }

    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        self.0.into_inner()?.finish()
    }
}
