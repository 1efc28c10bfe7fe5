//! The formats of archives, and a writer of any of them.

use std::io;
use std::str::FromStr;

use super::tar::TarWriter;
use super::zip::ZipArchive;
use workspace::{Entry, FilePath};

/// The format of an archive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::http) enum ArchiveFormat {
    /// tar, compressed with zstd.
    #[default]
    TarZst,
    /// zip.
    Zip,
}

impl FromStr for ArchiveFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "tar.zst" => Ok(Self::TarZst),
            "zip" => Ok(Self::Zip),
            _ => Err("neither `tar.zst` nor `zip`"),
        }
    }
}

impl ArchiveFormat {
    /// Returns the extension of a file of this format.
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::TarZst => "tar.zst",
            Self::Zip => "zip",
        }
    }

    /// Returns the media type.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::TarZst => "application/zstd",
            Self::Zip => "application/zip",
        }
    }
}

/// An archive that is being written into memory.
pub(super) enum Writer {
    Tar(Box<TarWriter>),
    Zip(Box<ZipArchive>),
}

impl Writer {
    /// Begins an archive.
    pub(super) fn new(format: ArchiveFormat) -> io::Result<Self> {
        Ok(match format {
            ArchiveFormat::TarZst => Self::Tar(Box::new(TarWriter::new()?)),
            ArchiveFormat::Zip => Self::Zip(Box::new(ZipArchive::new())),
        })
    }

    /// Adds an entry; `bytes` are the content of a file.
    pub(super) fn add(&mut self, path: &FilePath, entry: &Entry, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Tar(tar) => tar.add(path, entry, bytes),
            Self::Zip(zip) => zip.add(path, entry, bytes),
        }
    }

    /// Returns the number of bytes that wait to be taken.
    pub(super) fn written(&self) -> usize {
        match self {
            Self::Tar(tar) => tar.written(),
            Self::Zip(zip) => zip.written(),
        }
    }

    /// Takes the bytes that were written since the last call.
    pub(super) fn take(&mut self) -> Vec<u8> {
        match self {
            Self::Tar(tar) => tar.take(),
            Self::Zip(zip) => zip.take(),
        }
    }

    /// Ends the archive, and returns the rest of its bytes.
    pub(super) fn finish(self) -> io::Result<Vec<u8>> {
        match self {
            Self::Tar(tar) => tar.finish(),
            Self::Zip(zip) => zip.finish(),
        }
    }
}
