//! The files of the console that are part of the program.
//!
//! A new file in the folder `console` comes into the list below: a test compares both. What only
//! checks the console is left out: tests, and files about types and packages.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::body::Bytes;

use super::page_file::PageFile;

/// The name of the page itself.
pub(super) const INDEX: &str = "index.html";

/// The page itself.
const PAGE: &[u8] = include_bytes!("../../../console/index.html");

macro_rules! files {
    ($($name:literal)+) => {
        /// The other files by their paths below `/console/`, which are those in the folder.
        const FILES: &[(&str, &[u8])] =
            &[$(($name, include_bytes!(concat!("../../../console/", $name)).as_slice())),+];
    };
}

files! {
    "api.js" "app.css" "app.js" "identity.js" "keys.js" "live.js" "logic/definition.js" "logic/diff.js"
    "logic/events.js" "logic/format.js" "logic/lanes.js" "logic/list.js" "logic/markdown.js" "logic/media.js"
    "logic/merge.js" "logic/sse.js" "logic/text.js" "logic/timeline.js" "logic/urlstate.js" "logic/virtual.js"
    "pages/agent_editor.js" "pages/agents.js" "pages/compare.js" "pages/inbox.js" "pages/merge.js" "pages/overview.js"
    "pages/run.js" "pages/run_acts.js" "pages/run_data.js" "pages/run_inspector.js" "pages/run_timeline.js"
    "pages/runs.js" "pages/session.js" "pages/session_about.js" "pages/session_data.js" "pages/session_files.js"
    "pages/session_messages.js" "pages/session_state.js" "pages/threads.js" "pages/tree.js" "pages/tree_acts.js"
    "pages/tree_data.js" "pages/tree_inspector.js" "pages/tree_rows.js" "pages/trees.js" "pages/webhooks.js"
    "parts/answers.js" "parts/icons.js" "parts/list.js" "parts/message.js" "parts/new_run.js" "parts/open_calls.js"
    "parts/page.js" "parts/payload.js" "parts/removal.js" "parts/run_list.js" "parts/ui.js" "router.js" "routes.js"
    "shell.js" "vendor/LICENSE-htm" "vendor/LICENSE-preact" "vendor/LICENSE-signals" "vendor/SHA256SUMS"
    "vendor/htm-preact.mjs" "vendor/htm.mjs" "vendor/preact-hooks.mjs" "vendor/preact.mjs" "vendor/signals-core.mjs"
    "vendor/signals.mjs"
}

/// Returns the file of the path, or the page if there is none.
pub(super) fn embedded(path: &str) -> &'static PageFile {
    static PAGE_FILE: LazyLock<PageFile> = LazyLock::new(|| PageFile::new(INDEX, Bytes::from_static(PAGE)));
    static PAGE_FILES: LazyLock<HashMap<&'static str, PageFile>> = LazyLock::new(|| {
        let files = FILES.iter();
        files
            .map(|&(name, bytes)| (name, PageFile::new(name, Bytes::from_static(bytes))))
            .collect()
    });
    PAGE_FILES.get(path).unwrap_or(&PAGE_FILE)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    use ring::digest::{SHA256, digest};

    use super::*;

    /// The most bytes of all files.
    const MAX_BYTES: usize = 400 << 10;

    /// Adds the files of a folder by their paths below the first one.
    fn add_files(folder: &Path, path: &str, files: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{path}{}", entry.file_name().into_string().unwrap());
            if entry.file_type().unwrap().is_dir() {
                add_files(&entry.path(), &format!("{path}/"), files);
            } else {
                files.insert(path, fs::read(entry.path()).unwrap());
            }
        }
    }

    /// The files of the folder that a browser needs.
    fn folder() -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        add_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("console"), "", &mut files);
        let is_check = |path: &str| {
            let is_of_types = [".json", ".d.ts"].iter().any(|end| path.ends_with(end));
            path.starts_with("tests/") || path == "README.md" || is_of_types
        };
        files.retain(|path, _| !is_check(path));
        files
    }

    fn table() -> BTreeMap<String, Vec<u8>> {
        let files = FILES.iter().chain(&[(INDEX, PAGE)]);
        files
            .map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec()))
            .collect()
    }

    #[test]
    fn the_program_has_the_files_of_the_folder() {
        let (table, folder) = (table(), folder());
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&table), names(&folder), "the list in src/http/console/files.rs");
        // A program of another build could have other bytes.
        assert!(table == folder);
        assert_eq!(FILES.len() + 1, table.len(), "a file stands there twice");
        assert!(FILES.iter().map(|(name, _)| name).is_sorted());
        let bytes: usize = table.values().map(Vec::len).sum();
        assert!(bytes <= MAX_BYTES, "{bytes} bytes");
        // Browsers hash the import map after they have replaced other ends of lines.
        assert!(!PAGE.contains(&b'\r'));
    }

    #[test]
    fn vendored_files_are_as_their_packages_have_them() {
        let table = table();
        let sums = String::from_utf8(table["vendor/SHA256SUMS"].clone()).unwrap();
        let lines = sums.lines().filter(|line| !line.starts_with('#'));
        let sums: BTreeMap<String, String> = lines
            .map(|line| {
                let (sum, name) = line.split_once("  ").unwrap();
                (format!("vendor/{name}"), sum.to_owned())
            })
            .collect();
        let vendored = table
            .iter()
            .filter(|(name, _)| name.starts_with("vendor/") && *name != "vendor/SHA256SUMS");
        let computed: BTreeMap<String, String> = vendored
            .map(|(name, bytes)| {
                let sum = digest(&SHA256, bytes);
                let digits = sum.as_ref().iter();
                (
                    name.clone(),
                    digits.fold(String::new(), |text, byte| format!("{text}{byte:02x}")),
                )
            })
            .collect();
        assert_eq!(computed, sums);
    }
}
