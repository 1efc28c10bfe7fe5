//! zip, with deflate.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

use crate::workspace::{Entry, FilePath};

/// A zip in memory.
pub(super) struct ZipArchive {
    writer: ZipWriter<StreamWriter<Output>>,
    output: Output,
}

/// What was written and not taken yet. Clones share it.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl ZipArchive {
    pub(super) fn new() -> Self {
        let output = Output::default();
        Self {
            writer: ZipWriter::new_stream(output.clone()),
            output,
        }
    }

    pub(super) fn add(&mut self, path: &FilePath, entry: &Entry, bytes: &[u8]) -> io::Result<()> {
        let options = SimpleFileOptions::default()
            .compression_method(CompressionMethod::Deflated)
            .last_modified_time(DateTime::default());
        match entry {
            Entry::File { is_executable, .. } => {
                let mode = if *is_executable { 0o755 } else { 0o644 };
                self.writer.start_file(path.as_str(), options.unix_permissions(mode))?;
                self.writer.write_all(bytes)
            }
            Entry::Symlink { target } => Ok(self.writer.add_symlink(path.as_str(), target, options)?),
            Entry::Directory { .. } => Ok(self
                .writer
                .add_directory(path.as_str(), options.unix_permissions(0o755))?),
        }
    }

    pub(super) fn written(&self) -> usize {
        self.output.0.lock().len()
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output.0.lock())
    }

    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        self.writer.finish()?;
        Ok(std::mem::take(&mut self.output.0.lock()))
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
