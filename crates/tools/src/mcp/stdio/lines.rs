//! Cuts output into lines of a limited length.

use bytes::{Bytes, BytesMut};

/// Output that has not been read.
#[derive(Debug)]
pub(super) struct Lines {
    bytes: BytesMut,
    /// How much of it is known to have no end of a line.
    searched: usize,
    limit: usize,
}

/// A line is longer than the limit.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

impl Lines {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            bytes: BytesMut::new(),
            searched: 0,
            limit,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes the next line, without its end. Returns `None` if it is not complete.
    pub(super) fn next(&mut self) -> Result<Option<Bytes>, TooLong> {
        let new = self.bytes.get(self.searched..).unwrap_or_default();
        let found = new.iter().position(|byte| *byte == b'\n');
        let length = self.searched + found.unwrap_or(new.len());
        if length > self.limit {
            return Err(TooLong);
        }
        if found.is_none() {
            self.searched = length;
            return Ok(None);
        }
        self.searched = 0;
        let mut line = self.bytes.split_to(length + 1);
        line.truncate(length);
        Ok(Some(line.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_in_any_pieces_up_to_a_length() {
        let mut lines = Lines::new(4);
        for piece in ["a", "b\n\ncd", "ef", "\n1"] {
            lines.push(piece.as_bytes());
            if piece != "\n1" {
                continue;
            }
            for expected in ["ab", "", "cdef"] {
                assert_eq!(lines.next(), Ok(Some(Bytes::from(expected))));
            }
        }
        assert_eq!(lines.next(), Ok(None));
        lines.push(b"234");
        assert_eq!(lines.next(), Ok(None));
        lines.push(b"5");
        assert_eq!(lines.next(), Err(TooLong));
    }

    #[test]
    fn a_long_line_is_noticed_with_its_end() {
        let mut lines = Lines::new(4);
        lines.push(b"12345\n");
        assert_eq!(lines.next(), Err(TooLong));
    }
}
