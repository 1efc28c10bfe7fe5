//! A folder with definitions, for tests.

use std::fs;

use crate::config::{self, Config, Sources};

/// Writes a folder with these files, and returns it with the configuration whose key names it. The
/// configuration has a secret that is not set.
pub(super) fn folder(key: &str, files: &[(&str, &str)]) -> (tempfile::TempDir, Config) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let directory = folder.path().display().to_string();
    let sources = Sources {
        overrides: vec![
            (key.to_owned(), directory),
            ("tools.secrets.unset.env".to_owned(), "NO_SUCH_VARIABLE".to_owned()),
        ],
        ..Sources::default()
    };
    (folder, config::load(&sources).unwrap().config)
}
