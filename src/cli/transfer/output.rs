//! Where an export is written: a file that only its owner may read, or standard output.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// A file that has its name only once it is complete, or standard output.
pub(super) enum Output {
    File {
        file: File,
        partial: PathBuf,
        path: PathBuf,
    },
    Standard,
}

/// A writer that counts its bytes.
pub(super) struct Counted {
    writer: Box<dyn Write + Send>,
    pub(super) bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.writer.write(bytes)?;
        self.bytes += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Counted {
    fn new(writer: impl Write + Send + 'static) -> Self {
        let writer = Box::new(writer);
        Self { writer, bytes: 0 }
    }
}

impl Output {
    /// Opens a file, or standard output for `-`. Also returns the writer of the export.
    pub(super) fn open(path: &Path) -> anyhow::Result<(Self, Counted)> {
        if path == Path::new("-") {
            return Ok((Self::Standard, Counted::new(io::stdout())));
        }
        let mut partial = path.to_owned().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        // A file that is left over may be readable for others.
        let _ = fs::remove_file(&partial);
        let mut options = OpenOptions::new();
        let opened = options.write(true).create_new(true).mode(0o600).open(&partial);
        let file = opened.with_context(|| format!("can't write {}", partial.display()))?;
        let written = file.try_clone()?;
        let path = path.to_owned();
        Ok((Self::File { file, partial, path }, Counted::new(written)))
    }

    /// Returns its name for the user.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Standard => "standard output".to_owned(),
        }
    }

    /// Gives a complete file its name.
    pub(super) fn finish(&self) -> anyhow::Result<()> {
        if let Self::File { file, partial, path } = self {
            let named = file.sync_all().and_then(|()| fs::rename(partial, path));
            named.with_context(|| format!("can't write {}", path.display()))?;
        }
        Ok(())
    }

    /// Removes an incomplete file.
    pub(super) fn discard(&self) {
        if let Self::File { partial, .. } = self {
            // The cause matters more than a file that is left over.
            let _ = fs::remove_file(partial);
        }
    }
}
