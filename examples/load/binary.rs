//! The copy of the binary that is measured.
//!
//! The kernel maps as many pages of a file at once as it has read or written at once. So the memory
//! of the same service differs by 5 MB between two copies of one binary. Here, the kernel reads
//! each copy page by page, so the memory of two binaries can be compared.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use rustix::fs::{Advice, fadvise};

/// Copies a binary to a folder. The page cache has the whole copy afterwards.
pub(crate) fn copy_to(folder: &Path, binary: &Path) -> Result<PathBuf> {
    let copy = folder.join("agent-runtime");
    fs::copy(binary, &copy).with_context(|| format!("copy {}", binary.display()))?;
    read_by_page(&copy).with_context(|| format!("read {}", copy.display()))?;
    Ok(copy)
}

fn read_by_page(path: &Path) -> Result<()> {
    let mut file = File::open(path)?;
    // Only pages that are on the disk leave the page cache.
    file.sync_all()?;
    fadvise(&file, 0, None, Advice::DontNeed)?;
    // Without reading ahead, the kernel reads single pages.
    fadvise(&file, 0, None, Advice::Random)?;
    let mut buffer = vec![0; 64 * 1024];
    while file.read(&mut buffer)? > 0 {}
    Ok(())
}
