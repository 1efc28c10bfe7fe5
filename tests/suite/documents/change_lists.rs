//! Checks the lists of CONTRIBUTING.md: each file that a change needs exists, and contains the
//! words that the list names.

use std::path::Path;

use super::blocks::{read, spans_of, tables};

/// The part of a path that the contributor chooses.
const CHOICES: [&str; 5] = ["NAME", "AREA", "CODE", "KIND", "NNNN"];

#[test]
fn every_file_of_a_change_exists() {
    let lists = tables(&read("CONTRIBUTING.md"))
        .into_iter()
        .filter(|(mark, _)| mark == "places");
    let mut files = 0;
    for row in lists.flat_map(|(_, list)| list) {
        let mut spans = spans_of(&row[0]);
        let path = spans.next().unwrap_or_else(|| panic!("{row:?} names no file"));
        if let Some(choice) = CHOICES.iter().find_map(|choice| path.find(choice)) {
            let (folder, _) = path[..choice].rsplit_once('/').unwrap();
            assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).is_dir(), "{path}");
        } else {
            let file = read(&path);
            for words in spans {
                assert!(file.contains(&words), "{path} does not contain {words}");
            }
        }
        files += 1;
    }
    assert!(files > 40, "{files}");
}
