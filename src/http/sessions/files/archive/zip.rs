//! zip, with deflate.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use zip::write::{SimpleFileOptions, StreamWriter};
use zip::{CompressionMethod, DateTime, ZipWriter};

use workspace::{Entry, FilePath};

/// A zip in memory.
pub(super) struct ZipArchive {
    writer: ZipWriter<StreamWriter<Output>>,
    output: Output,
}

/// The bytes that were written and not taken yet. Clones share it.
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
        let path = portable(path.as_str());
        match entry {
            Entry::File { is_executable, .. } => {
                let mode = if *is_executable { 0o755 } else { 0o644 };
                self.writer.start_file(path, options.unix_permissions(mode))?;
                self.writer.write_all(bytes)
            }
            Entry::Symlink { target } => Ok(self.writer.add_symlink(path, portable(target), options)?),
            Entry::Directory { .. } => Ok(self.writer.add_directory(path, options.unix_permissions(0o755))?),
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

/// Returns a path whose names mean the same on Windows. There, `\` separates names, and a letter
/// with `:` is a drive: both characters are written as `%5C` and `%3A`. A `%` that could be read as
/// the beginning of these is `%25`, so different paths stay different.
fn portable(path: &str) -> Cow<'_, str> {
    if !path.contains(['\\', ':', '%']) {
        return Cow::Borrowed(path);
    }
    let mut written = String::with_capacity(path.len() + 8);
    for (at, character) in path.char_indices() {
        let rest = &path[at + character.len_utf8()..];
        let name = written.rsplit('/').next().unwrap_or_default();
        match character {
            '\\' => written.push_str("%5C"),
            ':' if name.len() == 1 && name.starts_with(|letter: char| letter.is_ascii_alphabetic()) => {
                written.push_str("%3A");
            }
            '%' if ["5C", "3A", "25"].iter().any(|code| rest.starts_with(code)) => written.push_str("%25"),
            other => written.push(other),
        }
    }
    Cow::Owned(written)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_mean_the_same_on_windows() {
        for (path, expected) in [
            ("src/a b.rs", "src/a b.rs"),
            ("..\\..\\evil.bat", "..%5C..%5Cevil.bat"),
            ("C:\\x", "C%3A%5Cx"),
            ("a/c:x/b", "a/c%3Ax/b"),
            ("12:30.txt", "12:30.txt"),
            ("ä:x", "ä:x"),
            ("a%5Cb/100%/%25", "a%255Cb/100%/%2525"),
        ] {
            assert_eq!(portable(path), expected, "{path}");
        }
    }
}
