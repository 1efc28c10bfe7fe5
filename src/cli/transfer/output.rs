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
    Standard(io::Stdout),
}

impl Output {
    /// Opens a file, or standard output for `-`.
    pub(super) fn open(path: &Path) -> anyhow::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Standard(io::stdout()));
        }
        let mut partial = path.to_owned().into_os_string();
        partial.push(".partial");
        let partial = PathBuf::from(partial);
        // A file that is left over may be readable for others.
        let _ = fs::remove_file(&partial);
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&partial);
        let file = opened.with_context(|| format!("can't write {}", partial.display()))?;
        let path = path.to_owned();
        Ok(Self::File { file, partial, path })
    }

    /// Returns what the user calls it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File { path, .. } => path.display().to_string(),
            Self::Standard(_) => "standard output".to_owned(),
        }
    }

    /// Gives the file its name.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        match self {
            Self::Standard(output) => Ok(output.flush()?),
            Self::File { file, partial, path } => {
                file.sync_all()?;
                fs::rename(partial, &*path).with_context(|| format!("can't write {}", path.display()))
            }
        }
    }

    /// Removes an incomplete file.
    pub(super) fn discard(&self) {
        if let Self::File { partial, .. } = self {
            // The cause matters more than a file that is left over.
            let _ = fs::remove_file(partial);
        }
    }
}

impl Write for &Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::File { file, .. } => (&mut &*file).write(bytes),
            Output::Standard(output) => (&mut &*output).write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::File { file, .. } => (&mut &*file).flush(),
            Output::Standard(output) => (&mut &*output).flush(),
        }
    }
}
