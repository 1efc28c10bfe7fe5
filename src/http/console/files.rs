//! The files of the console that are part of the program. `build.rs` compresses those of the folder
//! `console` with gzip.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::page_file::{PageFile, decompressed};

/// The name of the page itself.
pub(super) const INDEX: &str = "index.html";

/// The page itself.
const PAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/console/index.html.gz"));

/// All files by their paths below `/console/`, which are those in the folder.
const FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/console_files.rs"));

/// All files in one form.
struct Files {
    page: PageFile,
    by_path: HashMap<&'static str, PageFile>,
}

impl Files {
    /// Makes the files. `form` makes one of its path and its compressed bytes.
    fn new(form: fn(&str, &'static [u8]) -> PageFile) -> Self {
        let files = FILES.iter();
        Self {
            page: form(INDEX, PAGE),
            by_path: files.map(|&(path, gzip)| (path, form(path, gzip))).collect(),
        }
    }
}

/// Returns the file of the path, or the page if there is none. The plain files are made for the
/// first caller that does not accept gzip.
pub(super) fn embedded(path: &str, accepts_gzip: bool) -> &'static PageFile {
    static COMPRESSED: LazyLock<Files> = LazyLock::new(|| Files::new(PageFile::compressed));
    static PLAIN: LazyLock<Files> =
        LazyLock::new(|| Files::new(|path, gzip| PageFile::plain(path, decompressed(gzip).into())));
    let files: &Files = if accepts_gzip { &COMPRESSED } else { &PLAIN };
    files.by_path.get(path).unwrap_or(&files.page)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ring::digest::{SHA256, digest};

    use super::*;

    /// The most bytes of all files, compressed.
    const MAX_BYTES: usize = 200 << 10;

    #[test]
    fn the_files_take_few_bytes_of_the_program() {
        let bytes: usize = FILES.iter().map(|(_, gzip)| gzip.len()).sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
    }

    #[test]
    fn the_page_has_plain_ends_of_lines() {
        // Browsers hash the import map after they have replaced other ends of lines.
        assert!(!decompressed(PAGE).contains(&b'\r'));
    }

    #[test]
    fn vendored_files_are_as_their_packages_have_them() {
        let files: BTreeMap<&str, Vec<u8>> = FILES.iter().map(|(path, gzip)| (*path, decompressed(gzip))).collect();
        let sums = str::from_utf8(&files["vendor/SHA256SUMS"]).unwrap();
        let lines = sums.lines().filter(|line| !line.starts_with('#'));
        let sums: BTreeMap<String, String> = lines
            .map(|line| {
                let (sum, name) = line.split_once("  ").unwrap();
                (format!("vendor/{name}"), sum.to_owned())
            })
            .collect();
        let vendored = files
            .iter()
            .filter(|(path, _)| path.starts_with("vendor/") && **path != "vendor/SHA256SUMS");
        let computed: BTreeMap<String, String> = vendored
            .map(|(path, bytes)| {
                let sum = digest(&SHA256, bytes);
                let digits = sum.as_ref().iter();
                (
                    (*path).to_owned(),
                    digits.fold(String::new(), |text, byte| format!("{text}{byte:02x}")),
                )
            })
            .collect();
        assert_eq!(computed, sums);
    }
}
