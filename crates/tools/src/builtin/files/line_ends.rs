//! How the lines of a file end, and the text of a file as models see it: each line ends with LF.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter, memrchr};

/// Returns the byte that ends lines. That is LF, but CR in a file that has CR alone, as old Macs
/// wrote it.
pub(super) fn terminator(file: &[u8]) -> u8 {
    let has_only_cr = memchr(b'\n', file).is_none() && memchr(b'\r', file).is_some();
    if has_only_cr { b'\r' } else { b'\n' }
}

/// Returns how a line of a file ends: with LF, CRLF or CR. `None` if it has no end.
pub(super) fn end_of(line: &[u8], terminator: u8) -> Option<&'static [u8]> {
    match line {
        [.., b'\r'] if terminator == b'\r' => Some(b"\r"),
        [.., b'\r', b'\n'] => Some(b"\r\n"),
        [.., b'\n'] => Some(b"\n"),
        _ => None,
    }
}

/// Describes the ends of the lines for a model; empty if all lines end with LF.
pub(super) fn note(file: &[u8]) -> String {
    if terminator(file) == b'\r' {
        return "lines end with CR".to_owned();
    }
    let all = memchr_iter(b'\n', file).count();
    match memchr_iter(b'\n', file).filter(|end| is_crlf(file, *end)).count() {
        0 => String::new(),
        crlf if crlf == all => "lines end with CRLF".to_owned(),
        crlf => format!("{crlf} of {all} lines end with CRLF, the others with LF"),
    }
}

/// Returns a text of a model with LF for each CRLF, and for each CR if lines end with that.
pub(super) fn with_lf(text: &str, terminator: u8) -> Cow<'_, str> {
    if !text.contains('\r') {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    Cow::Owned(if terminator == b'\r' {
        text.replace('\r', "\n")
    } else {
        text
    })
}

/// A file whose lines all end with LF. It knows how they end in the file.
#[derive(Debug)]
pub(super) struct LfText<'a> {
    pub(super) text: Cow<'a, [u8]>,
    terminator: u8,
    /// The offsets of the ends in the text that are CRLF in the file.
    crlf: Vec<usize>,
}

impl<'a> LfText<'a> {
    /// Makes the text of a file.
    pub(super) fn of(file: &'a [u8]) -> Self {
        let terminator = terminator(file);
        let mut crlf = Vec::new();
        let text = if terminator == b'\r' {
            Cow::Owned(
                file.iter()
                    .map(|byte| if *byte == b'\r' { b'\n' } else { *byte })
                    .collect(),
            )
        } else {
            let ends = memchr_iter(b'\n', file).filter(|end| is_crlf(file, *end));
            crlf.extend(ends.enumerate().map(|(before, end)| end - before - 1));
            without_cr(file, &crlf)
        };
        Self { text, terminator, crlf }
    }

    /// Takes a file as it is, with CR as a part of its lines.
    pub(super) fn exact(file: &'a [u8]) -> Self {
        Self {
            text: Cow::Borrowed(file),
            terminator: b'\n',
            crlf: Vec::new(),
        }
    }

    /// Returns the byte that ends lines in the file.
    pub(super) fn terminator(&self) -> u8 {
        self.terminator
    }

    /// Returns where an offset of the text is in the file.
    pub(super) fn in_file(&self, offset: usize) -> usize {
        offset + self.crlf.partition_point(|end| *end < offset)
    }

    /// Returns how the line ends in the file whose LF is at an offset of the text.
    pub(super) fn end_at(&self, offset: usize) -> &'static [u8] {
        match self.terminator {
            b'\r' => b"\r",
            _ if self.crlf.binary_search(&offset).is_ok() => b"\r\n",
            _ => b"\n",
        }
    }

    /// Returns how the line ends that has an offset of the text: at the LF that follows, which the
    /// caller has found, or like the line before.
    pub(super) fn end_around(&self, offset: usize, following: Option<usize>) -> &'static [u8] {
        let end = following.or_else(|| memrchr(b'\n', &self.text[..offset]));
        end.map_or(b"\n", |end| self.end_at(end))
    }
}

fn is_crlf(file: &[u8], end: usize) -> bool {
    end > 0 && file[end - 1] == b'\r'
}

/// Returns a file without the CR of each CRLF. These come before the given offsets of the result.
fn without_cr<'a>(file: &'a [u8], crlf: &[usize]) -> Cow<'a, [u8]> {
    if crlf.is_empty() {
        return Cow::Borrowed(file);
    }
    let mut text = Vec::with_capacity(file.len() - crlf.len());
    let mut rest = file;
    for end in crlf {
        let (line, after) = rest.split_at(end - text.len());
        text.extend_from_slice(line);
        rest = &after[1..];
    }
    text.extend_from_slice(rest);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_knows_the_ends_of_the_file() {
        let lf = LfText::of(b"a\nb\r\n\r\nc\rd\ne");
        assert_eq!(&*lf.text, b"a\nb\n\nc\rd\ne");
        let ends: Vec<_> = [1, 3, 4, 8].map(|at| lf.end_at(at)).to_vec();
        assert_eq!(ends, [&b"\n"[..], b"\r\n", b"\r\n", b"\n"]);
        assert_eq!([0, 2, 3, 4, 5, 10].map(|at| lf.in_file(at)), [0, 2, 3, 5, 7, 12]);
        assert_eq!(lf.end_around(9, None), b"\n");
        let cr = LfText::of(b"a\rb");
        assert_eq!((&*cr.text, cr.end_at(1), cr.in_file(2)), (&b"a\nb"[..], &b"\r"[..], 2));
        assert_eq!(LfText::of(b"ab").end_around(2, None), b"\n");
    }

    #[test]
    fn a_note_says_how_lines_end() {
        for (file, expected) in [
            ("", ""),
            ("a\nb", ""),
            ("a\r\nb\r\n", "lines end with CRLF"),
            ("a\nb\r\nc\n", "1 of 3 lines end with CRLF, the others with LF"),
            ("a\rb\r", "lines end with CR"),
            ("a\rb\n", ""),
        ] {
            assert_eq!(note(file.as_bytes()), expected, "{file:?}");
        }
    }
}
