//! Finds the line of a file that a model may have meant, if its text is not in the file.

use crate::builtin::files::text::{lines, quoted};

/// The most lines that are compared by similarity.
const MAX_COMPARED: usize = 5_000;
/// The most characters of a line that are compared.
const MAX_COMPARED_CHARACTERS: usize = 120;
/// The least similarity of a line that is shown.
const MIN_SIMILARITY: f64 = 0.6;

/// Returns a hint: which line is most like the first line of the text.
pub(super) fn nearest_line(file: &[u8], text: &str) -> String {
    if has_line_numbers(text) {
        return "leave out the line numbers, which are no part of the file".to_owned();
    }
    let Some(wanted) = text.lines().map(str::trim).find(|line| !line.is_empty()) else {
        return "it has only spaces and line ends; use lines around it".to_owned();
    };
    let trimmed = |line: &[u8]| String::from_utf8_lossy(line.trim_ascii()).into_owned();
    let numbered = || lines(file).enumerate().map(|(index, line)| (index + 1, line));
    if let Some((number, line)) = numbered().find(|(_, line)| line.trim_ascii() == wanted.as_bytes()) {
        let reason = "compare spaces and the lines after it";
        return format!("line {number} is like its first line ({reason}): {}", quoted(line));
    }
    let wanted: String = wanted.chars().take(MAX_COMPARED_CHARACTERS).collect();
    let similarity = |line: &[u8]| {
        let line: String = trimmed(line).chars().take(MAX_COMPARED_CHARACTERS).collect();
        let (short, long) = (line.len().min(wanted.len()), line.len().max(wanted.len()));
        // Texts of very different lengths can't be similar.
        if short * 2 < long {
            return 0.0;
        }
        strsim::normalized_levenshtein(&line, &wanted)
    };
    let ranked = numbered()
        .take(MAX_COMPARED)
        .map(|(number, line)| (similarity(line), number, line));
    let best = ranked.max_by(|(left, ..), (right, ..)| left.total_cmp(right));
    match best.filter(|(similarity, ..)| *similarity >= MIN_SIMILARITY) {
        Some((_, number, line)) => format!("the most similar line is {number}: {}", quoted(line)),
        None => "no line is similar; read the file again".to_owned(),
    }
}

/// Returns whether each line begins with a number and a tab, as `read_file` shows them.
fn has_line_numbers(text: &str) -> bool {
    let is_numbered = |line: &str| {
        let rest = line.trim_start().trim_start_matches(|c: char| c.is_ascii_digit());
        rest.starts_with('\t') && rest.len() < line.trim_start().len()
    };
    !text.is_empty() && text.lines().all(is_numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_names_the_line_that_was_meant() {
        let file = b"fn main() {\n    let total = count + 1;\r\n}\n";
        for (text, hint) in [
            ("let total = count + 1;\n  x", "line 2 is like its first line"),
            (
                "\n  let total = counter + 1;",
                "the most similar line is 2: `    let total = count + 1;`",
            ),
            ("while x { }", "no line is similar"),
            ("  \n", "only spaces"),
            ("     1\tfn main() {\n     2\t    let", "leave out the line numbers"),
        ] {
            let found = nearest_line(file, text);
            assert!(found.contains(hint), "{text:?}: {found}");
        }
        assert!(nearest_line(b"", "x").contains("no line is similar"));
        assert!(nearest_line(&[0xff; 9], "x").contains("no line is similar"));
    }

    #[test]
    fn a_huge_line_is_neither_compared_nor_shown_as_a_whole() {
        let file = [b"x".repeat(1 << 20), b"\n".to_vec(), b"y\n".repeat(1 << 18)].concat();
        let hint = nearest_line(&file, &"x".repeat(200));
        assert!(
            hint.starts_with("the most similar line is 1: `xxx") && hint.len() < 400,
            "{hint}"
        );
    }
}
