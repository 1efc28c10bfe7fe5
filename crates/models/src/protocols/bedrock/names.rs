//! Gives the files of a request unique names.

use rpds::{HashTrieMapSync, HashTrieSetSync};

use crate::names::ID_BYTES;

/// The most characters of a file's name.
const NAME_CHARS: usize = 100;

/// The names of files that a request has given so far. A copy costs the same for any number.
#[derive(Debug, Clone, Default)]
pub(super) struct DocumentNames {
    used: HashTrieSetSync<String>,
    /// The next number for each name that occurs more than once.
    numbers: HashTrieMapSync<String, u64>,
}

impl DocumentNames {
    /// Returns a name that the protocol accepts and that no other file of the request has.
    pub(super) fn unique(&mut self, name: Option<&str>) -> String {
        let is_refused = |c: char| !c.is_ascii_alphanumeric() && !"-()[]".contains(c);
        let words = name.unwrap_or_default().split(is_refused);
        let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
        let name: String = words.join(" ").chars().take(NAME_CHARS).collect();
        let name = if name.is_empty() { "document" } else { name.trim() };
        let mut free = name.to_owned();
        // No number is tried twice, so many files with one name take linear time.
        while self.used.contains(&free) {
            let number = self.numbers.get(name).copied().unwrap_or(2);
            free = format!("{name} {number}");
            self.numbers.insert_mut(name.to_owned(), number + 1);
        }
        self.used.insert_mut(free.clone());
        free
    }

    /// Returns about how many bytes of memory the names take.
    pub(super) fn bytes(&self) -> usize {
        (self.used.size() + self.numbers.size()) * ID_BYTES
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn files_have_names_that_the_protocol_takes_and_no_two_the_same() {
        let mut names = DocumentNames::default();
        for (name, expected) in [
            (None, "document"),
            (Some("a.pdf"), "a pdf"),
            (Some(" a..pdf "), "a pdf 2"),
            (Some("größe_(1)"), "gr e (1)"),
            (Some("日本"), "document 2"),
            (Some("a pdf 2"), "a pdf 2 2"),
        ] {
            assert_eq!(names.unique(name), expected);
        }
        assert_eq!(names.unique(Some(&"x".repeat(500))).len(), NAME_CHARS);
    }

    /// With quadratic work this would take hours.
    #[test]
    fn many_files_of_one_name_are_numbered_without_trying_every_number_again() {
        let many = 200_000;
        let mut names = DocumentNames::default();
        let given: HashSet<_> = (0..many).map(|_| names.unique(Some("a.pdf"))).collect();
        assert_eq!(given.len(), many);
        assert_eq!(names.unique(Some("a.pdf")), format!("a pdf {}", many + 1));
    }
}
