//! Checks that commands leave nothing on the host once all replicas have ended.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::replica::lasting_process;

/// How long a helper whose replica was killed may take.
const LIMIT: Duration = Duration::from_secs(5);
const GLANCE: Duration = Duration::from_millis(50);

/// Looks for processes of commands and for directories of runs in their folder, and describes those
/// that there are.
pub(crate) async fn find(folder: &Path) -> Result<Vec<String>> {
    let begun = Instant::now();
    loop {
        let found = [processes()?, directories(folder)?].concat();
        if found.is_empty() || begun.elapsed() > LIMIT {
            return Ok(found);
        }
        tokio::time::sleep(GLANCE).await;
    }
}

fn processes() -> Result<Vec<String>> {
    let wanted = lasting_process();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").context("list the processes")? {
        let entry = entry?;
        // One that has ended meanwhile has none.
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        if words.join(" ").trim_end() == wanted {
            found.push(format!("a process of a command is left: {}", entry.path().display()));
        }
    }
    Ok(found)
}

fn directories(folder: &Path) -> Result<Vec<String>> {
    let entries = fs::read_dir(folder).context("list the directories of commands")?;
    let mut found = Vec::new();
    for entry in entries {
        found.push(format!("a directory of commands is left: {}", entry?.path().display()));
    }
    Ok(found)
}
