//! The names that a request gives: ids of calls, and names of files, each of them once.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::models::names::{IdRule, WireIds};

/// The most characters of a file's name.
const NAME_CHARS: usize = 100;

/// The names that a request has given so far.
#[derive(Debug)]
pub(super) struct Names {
    /// The ids of calls.
    pub(super) ids: WireIds,
    documents: HashSet<String>,
    /// The next number of each file name that was wanted more than once.
    numbers: HashMap<String, u64>,
    called: BTreeSet<String>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            ids: WireIds::new(IdRule::Short),
            documents: HashSet::new(),
            numbers: HashMap::new(),
            called: BTreeSet::new(),
        }
    }
}

impl Names {
    /// Returns a name that the protocol takes and no other file of the request has.
    pub(super) fn of_document(&mut self, name: Option<&str>) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-()[]".contains(c);
        let name: String = name
            .unwrap_or_default()
            .chars()
            .map(|c| if plain(c) { c } else { ' ' })
            .collect();
        let name: String = name
            .split(' ')
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
        let name: String = name.chars().take(NAME_CHARS).collect();
        let name = if name.is_empty() { "document" } else { name.trim() };
        let mut free = name.to_owned();
        // No number is tried twice, so that many files of one name take linear time.
        while !self.documents.insert(free.clone()) {
            let number = self.numbers.entry(name.to_owned()).or_insert(2);
            free = format!("{name} {number}");
            *number += 1;
        }
        free
    }

    /// Remembers that a tool was called.
    pub(super) fn called(&mut self, tool: &str) {
        if !self.called.contains(tool) {
            self.called.insert(tool.to_owned());
        }
    }

    /// Returns the tools that were called.
    pub(super) fn into_called(self) -> BTreeSet<String> {
        self.called
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_names_that_the_protocol_takes_and_no_two_the_same() {
        let mut names = Names::default();
        for (name, expected) in [
            (None, "document"),
            (Some("a.pdf"), "a pdf"),
            (Some(" a..pdf "), "a pdf 2"),
            (Some("größe_(1)"), "gr e (1)"),
            (Some("日本"), "document 2"),
            (Some("a pdf 2"), "a pdf 2 2"),
        ] {
            assert_eq!(names.of_document(name), expected);
        }
        assert_eq!(names.of_document(Some(&"x".repeat(500))).len(), NAME_CHARS);
    }

    /// With quadratic work this would take hours.
    #[test]
    fn many_files_of_one_name_are_numbered_without_trying_every_number_again() {
        let many = 200_000;
        let mut names = Names::default();
        let given: HashSet<_> = (0..many).map(|_| names.of_document(Some("a.pdf"))).collect();
        assert_eq!(given.len(), many);
        assert_eq!(names.of_document(Some("a.pdf")), format!("a pdf {}", many + 1));
    }
}
