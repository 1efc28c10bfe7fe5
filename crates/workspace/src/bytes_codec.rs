//! Reads and writes the parts of encoded contents: variable-length integers, hashes and texts.
//! Each value has exactly one encoding. Reading never panics and allocates nothing.

use values::session::Hash;

/// Bytes that are not a valid encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are not a valid encoding")]
pub(super) struct DecodeError;

/// Appends an integer: seven bits a byte, the lowest first.
pub(super) fn write_varint(out: &mut Vec<u8>, mut value: u64) {
    loop {
        let [low, ..] = value.to_le_bytes();
        value >>= 7;
        if value == 0 {
            return out.push(low);
        }
        out.push(low | 0x80);
    }
}

/// Appends a text behind its length.
pub(super) fn write_text(out: &mut Vec<u8>, text: &str) {
    write_varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// Reads encoded values from bytes.
#[derive(Debug)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns whether all bytes are read.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Reads one byte.
    pub(super) fn byte(&mut self) -> Result<u8, DecodeError> {
        let (first, rest) = self.0.split_first().ok_or(DecodeError)?;
        self.0 = rest;
        Ok(*first)
    }

    /// Reads an integer. Refuses a number that is longer than necessary.
    pub(super) fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if (bits << shift) >> shift != bits {
                return Err(DecodeError);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                let is_padded = byte == 0 && shift > 0;
                return if is_padded { Err(DecodeError) } else { Ok(value) };
            }
        }
        Err(DecodeError)
    }

    /// Reads a hash.
    pub(super) fn hash(&mut self) -> Result<Hash, DecodeError> {
        self.take(32)?.try_into().map_err(|_| DecodeError)
    }

    /// Reads a text of at most `max` bytes.
    pub(super) fn text(&mut self, max: usize) -> Result<&'a str, DecodeError> {
        let length = usize::try_from(self.varint()?).map_err(|_| DecodeError)?;
        if length > max {
            return Err(DecodeError);
        }
        str::from_utf8(self.take(length)?).map_err(|_| DecodeError)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(DecodeError)?;
        self.0 = rest;
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_integer_has_one_encoding() {
        for (bytes, value) in [
            (&[0][..], Ok(0)),
            (&[0x7f], Ok(127)),
            (&[0x80, 1], Ok(128)),
            (&[0x80, 0], Err(DecodeError)),
            (&[0x80], Err(DecodeError)),
            (&[0xff; 10], Err(DecodeError)),
            (
                &[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2],
                Err(DecodeError),
            ),
        ] {
            assert_eq!(Reader::new(bytes).varint(), value, "{bytes:x?}");
        }
    }

    proptest! {
        #[test]
        fn integers_and_texts_come_back(value: u64, text in ".{0,300}") {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, value);
            write_text(&mut bytes, &text);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint(), Ok(value));
            prop_assert_eq!(reader.text(text.len()), Ok(text.as_str()));
            prop_assert!(reader.is_empty());
        }
    }
}
