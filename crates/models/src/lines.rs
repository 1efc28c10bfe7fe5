//! Splits lines of JSON into frames without a name, in linear time and bounded memory. No IO, no
//! JSON.

use memchr::memchr;

use super::sse::Frame;

/// The byte order mark that some servers put before UTF-8.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// A line is longer than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a line of the response is longer than {limit} bytes")]
pub(super) struct LineTooLong {
    limit: usize,
}

/// Splits a stream piece by piece. All lines use the same buffer.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    line: Vec<u8>,
    /// Whether the line in the buffer was returned.
    is_returned: bool,
}

impl Lines {
    /// Makes a splitter for lines of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            is_returned: false,
        }
    }

    /// Reads the next bytes up to the end of a line, and removes them from `bytes`. `None`: the
    /// line goes on in the bytes after these.
    pub(super) fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame<'_>>, LineTooLong> {
        self.forget_returned();
        let (piece, rest) = match memchr(b'\n', bytes) {
            Some(end) => (&bytes[..end], Some(&bytes[end + 1..])),
            None => (*bytes, None),
        };
        if self.line.len() + piece.len() > self.limit {
            return Err(LineTooLong { limit: self.limit });
        }
        self.line.extend_from_slice(piece);
        self.is_returned = rest.is_some();
        *bytes = rest.unwrap_or_default();
        Ok(self.is_returned.then(|| self.frame()))
    }

    /// Ends the stream. Returns the last line if no line break ended it.
    pub(super) fn finish(&mut self) -> Option<Frame<'_>> {
        self.forget_returned();
        (!self.line.is_empty()).then(|| self.frame())
    }

    fn frame(&self) -> Frame<'_> {
        let line = self.line.strip_prefix(MARK).unwrap_or(&self.line);
        Frame {
            data: String::from_utf8_lossy(line),
            ..Frame::default()
        }
    }

    fn forget_returned(&mut self) {
        if std::mem::take(&mut self.is_returned) {
            self.line.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_the_same_in_pieces_of_any_size() {
        let text = "\u{FEFF}{\"a\": 1}\r\n\n{\"é\": 2}\n{\"b\"";
        for size in 1..=text.len() {
            let mut lines = Lines::new(20);
            let mut found = Vec::new();
            for mut bytes in text.as_bytes().chunks(size) {
                while let Some(frame) = lines.next(&mut bytes).unwrap() {
                    found.push(frame.data.into_owned());
                }
                assert!(bytes.is_empty());
            }
            found.extend(lines.finish().map(|frame| frame.data.into_owned()));
            assert_eq!(found, ["{\"a\": 1}\r", "", "{\"é\": 2}", "{\"b\""], "pieces of {size}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_an_error() {
        let mut lines = Lines::new(3);
        assert_eq!(lines.next(&mut &b"123\n"[..]).unwrap().unwrap().data, "123");
        assert_eq!(lines.next(&mut &b"12"[..]), Ok(None));
        assert_eq!(lines.next(&mut &b"34"[..]), Err(LineTooLong { limit: 3 }));
    }
}
