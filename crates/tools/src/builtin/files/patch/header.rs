//! Reads the headers of hunks, `@@ -1,3 +1,4 @@`, and the names of files.

use super::model::PatchError;

/// The header of a hunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct HunkHeader {
    /// The number of the first old line, if the header has numbers.
    pub(super) start: Option<usize>,
    /// How many old and new lines the hunk has, if the header has numbers.
    pub(super) counts: Option<(usize, usize)>,
    /// A line of the file before the hunk, if the header has no numbers.
    pub(super) anchor: Option<String>,
}

/// Reads the header of a hunk, which begins with `@@`. Models often leave out the numbers.
pub(super) fn read_header(line: &str, number: usize) -> Result<HunkHeader, PatchError> {
    if line.starts_with("@@@") {
        let message = "a combined diff (`@@@`) can't be applied; write a diff of two versions";
        return Err(PatchError::at(number, message));
    }
    let rest = line.strip_prefix("@@").unwrap_or(line).trim();
    if let Some(ranges) = rest.strip_prefix('-')
        && let Some((old, after)) = ranges.split_once(" +")
        && let Some((start, old)) = read_range(old)
        && let Some((_, new)) = read_range(after.split([' ', '@']).next().unwrap_or(after))
    {
        return Ok(HunkHeader {
            start: Some(start),
            counts: Some((old, new)),
            anchor: None,
        });
    }
    // `@@ ... @@` stands for numbers that the model does not know.
    let anchor = rest.strip_suffix("@@").unwrap_or(rest).trim();
    let has_text = !anchor.is_empty() && anchor.chars().any(char::is_alphanumeric);
    Ok(HunkHeader {
        anchor: has_text.then(|| anchor.to_owned()),
        ..HunkHeader::default()
    })
}

/// Reads `12,3` or `12`, which means one line.
fn read_range(text: &str) -> Option<(usize, usize)> {
    let (line, count) = text.split_once(',').unwrap_or((text, "1"));
    Some((line.trim().parse().ok()?, count.trim().parse().ok()?))
}

/// Reads a name behind `--- ` or `+++ `; `None` means that there is no file. A tab ends the name.
pub(super) fn read_name(text: &str, number: usize) -> Result<Option<String>, PatchError> {
    let name = text.split('\t').next().unwrap_or(text).trim_end();
    let name = unquoted(name.trim_start(), number)?;
    match name.as_str() {
        "" => Err(PatchError::at(number, "a name of a file is missing")),
        "/dev/null" => Ok(None),
        _ => Ok(Some(name)),
    }
}

/// Removes the prefixes `a/` and `b/` of git, if both names have theirs.
pub(super) fn without_prefixes(old: Option<String>, new: Option<String>) -> (Option<String>, Option<String>) {
    let is_prefixed = |name: &Option<String>, prefix: &str| name.as_ref().is_none_or(|name| name.starts_with(prefix));
    if is_prefixed(&old, "a/") && is_prefixed(&new, "b/") {
        let cut = |name: Option<String>| name.map(|name| name[2..].to_owned());
        return (cut(old), cut(new));
    }
    (old, new)
}

/// Reads a name that git has quoted since it has special characters, such as `"a/\303\244"`.
pub(super) fn unquoted(name: &str, number: usize) -> Result<String, PatchError> {
    let Some(quoted) = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')) else {
        return Ok(name.to_owned());
    };
    let invalid = || PatchError::at(number, "a quoted name is invalid");
    let mut bytes = Vec::with_capacity(quoted.len());
    let mut rest = quoted.as_bytes();
    loop {
        let byte;
        (byte, rest) = match rest {
            [] => break,
            [b'\\', escaped @ (b'"' | b'\\'), after @ ..] => (*escaped, after),
            [b'\\', b'n', after @ ..] => (b'\n', after),
            [b'\\', b't', after @ ..] => (b'\t', after),
            [b'\\', b'r', after @ ..] => (b'\r', after),
            [b'\\', a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', after @ ..] => {
                ((a - b'0') * 64 + (b - b'0') * 8 + (c - b'0'), after)
            }
            [b'\\', ..] => return Err(invalid()),
            [byte, after @ ..] => (*byte, after),
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_with_and_without_numbers() {
        let numbers = |line: &str| {
            let header = read_header(line, 1).unwrap();
            (header.start, header.counts)
        };
        assert_eq!(numbers("@@ -1,3 +2,4 @@"), (Some(1), Some((3, 4))));
        assert_eq!(numbers("@@ -12 +13,0 @@ fn main() {"), (Some(12), Some((1, 0))));
        assert_eq!(numbers("@@ -0,0 +1 @@"), (Some(0), Some((0, 1))));
        assert_eq!(numbers("@@ -1,99999999999999999999 +1 @@"), (None, None));
        for (line, anchor) in [
            ("@@", None),
            ("@@ @@", None),
            ("@@ ... @@", None),
            ("@@ def f(self):", Some("def f(self):")),
            ("@@ class A @@", Some("class A")),
            ("@@ -a,b +c @@", Some("-a,b +c")),
        ] {
            assert_eq!(read_header(line, 1).unwrap().anchor.as_deref(), anchor, "{line}");
        }
        assert!(read_header("@@@ -1 -1 +1 @@@", 4).unwrap_err().0.starts_with("line 4"));
    }

    #[test]
    fn names_lose_their_times_quotes_and_prefixes() {
        let name = |text: &str| read_name(text, 1).unwrap();
        assert_eq!(name("a/b c\t2026-01-01 00:00:00"), Some("a/b c".to_owned()));
        assert_eq!(name("/dev/null"), None);
        assert_eq!(name(r#""a/\303\244\t\"\\""#), Some("a/ä\t\"\\".to_owned()));
        for bad in ["", "\t1", r#""\""#, r#""\9""#, r#""\37""#, r#""\777""#, r#""\377""#] {
            assert!(read_name(bad, 1).is_err(), "{bad}");
        }
        let both = |old: &str, new: &str| {
            let (old, new) = without_prefixes(Some(old.to_owned()), Some(new.to_owned()));
            (old.unwrap(), new.unwrap())
        };
        assert_eq!(both("a/x", "b/x"), ("x".to_owned(), "x".to_owned()));
        assert_eq!(both("a/x", "a/x"), ("a/x".to_owned(), "a/x".to_owned()));
        assert_eq!(without_prefixes(None, Some("b/x".to_owned())).1, Some("x".to_owned()));
        assert_eq!(
            without_prefixes(None, Some("src/x".to_owned())).1,
            Some("src/x".to_owned())
        );
    }
}
