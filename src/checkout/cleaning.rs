//! Finds what a directory has besides the files of its tree.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::io;

use super::beneath::{entries, path_of};
use super::level::Level;

/// Removes everything from a directory that is not known.
pub(super) fn remove_unknown(root: &Level, known: &BTreeSet<&str>) -> io::Result<()> {
    for_each_unknown(root, known, |directory, _, name| directory.remove(name))
}

/// Does something with each name in a directory that is not known, at any depth. What is below it
/// is not known either.
pub(super) fn for_each_unknown(
    root: &Level,
    known: &BTreeSet<&str>,
    mut action: impl FnMut(&Level, &str, &CStr) -> io::Result<()>,
) -> io::Result<()> {
    let mut waiting = vec![String::new()];
    while let Some(above) = waiting.pop() {
        let directory = root.make(&above)?;
        let mut unknown = Vec::new();
        for entry in entries(&directory.own)? {
            let entry = entry?;
            let name = entry.file_name();
            let path = name.to_str().ok().map(|name| path_of(&above, name));
            match path.filter(|path| known.contains(path.as_str())) {
                Some(path) if entry.file_type() == rustix::fs::FileType::Directory => waiting.push(path),
                Some(_) => (),
                None if directory.is_whiteout(name) => (),
                None => unknown.push(name.to_owned()),
            }
        }
        for name in unknown {
            action(&directory, &above, &name)?;
        }
    }
    Ok(())
}
