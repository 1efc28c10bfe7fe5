//! Finds the entries of a directory beside the files of its tree, and makes the directory like a
//! new one.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::io;

use rustix::fs::{FileType, Mode};

use super::beneath::{EXECUTABLE, PRIVATE, entries, open_any, open_file, path_of, set_mode};
use super::facts::{Fact, Facts};
use super::file_clock::set_modified;
use super::level::Level;
use super::removal::Budget;

/// How many unknown names of a directory are found before something is done with them.
const MAX_FOUND: usize = 1_000;

/// The names in a directory.
#[derive(Debug, Default)]
struct Names {
    /// The names of known files and symlinks, and their paths.
    known: Vec<(CString, String)>,
    /// The names that are not known. Entries below them are not known either.
    unknown: Vec<CString>,
}

/// Removes everything from a directory that is not known, and gives the rest the modes of new files
/// and directories, and the times of the tree. Returns the facts of the files that it has changed.
pub(super) fn restore(root: &Level, facts: &Facts, budget: &mut Budget) -> io::Result<BTreeMap<String, Fact>> {
    let mut changed = BTreeMap::new();
    for_each_directory(root, &facts.paths(), |directory, above, names| {
        for name in &names.unknown {
            directory.remove_within(name.as_c_str(), budget)?;
        }
        for (name, path) in names.known {
            let touched = facts.touched.get(&path);
            let is_new = |fact: &Fact| fact.kind() == FileType::Symlink || fact.mode() == fact.new_mode();
            if let Some(fact) = facts.files.get(&path).filter(|fact| !is_new(fact) || touched.is_some()) {
                let file = open_any(&directory.0, &*name)?;
                set_mode(&file, fact.new_mode())?;
                if let Some(modified) = touched {
                    set_modified(open_file(&directory.0, &name)?, *modified)?;
                }
                changed.insert(path, Fact::of(&rustix::fs::fstat(&file)?));
            }
        }
        let mode = if above.is_empty() { PRIVATE } else { EXECUTABLE };
        if Mode::from_raw_mode(rustix::fs::fstat(&directory.0)?.st_mode) != mode {
            rustix::fs::fchmod(&directory.0, mode)?;
        }
        Ok(())
    })?;
    Ok(changed)
}

/// Does something with a directory and with each known one in it, at any depth. Does it several
/// times if a directory has many names that are not known.
fn for_each_directory(
    root: &Level,
    known: &BTreeSet<&str>,
    mut action: impl FnMut(&Level, &str, Names) -> io::Result<()>,
) -> io::Result<()> {
    let mut waiting = vec![String::new()];
    while let Some(above) = waiting.pop() {
        let directory = root.make(&above)?;
        let mut names = Names::default();
        for entry in entries(&directory.0)? {
            let entry = entry?;
            let name = entry.file_name();
            let path = name.to_str().ok().map(|name| path_of(&above, name));
            match path.filter(|path| known.contains(path.as_str())) {
                Some(path) if entry.file_type() == FileType::Directory => waiting.push(path),
                Some(path) => names.known.push((name.to_owned(), path)),
                None => names.unknown.push(name.to_owned()),
            }
            if names.unknown.len() >= MAX_FOUND {
                action(&directory, &above, std::mem::take(&mut names))?;
            }
        }
        action(&directory, &above, names)?;
    }
    Ok(())
}
