//! The output of a command, as the model and the readers of events see it: both streams in one, in
//! the order in which they came.

use std::time::Duration;

use agent::ports::ToolContext;

/// How often output is emitted.
pub(super) const EMIT_INTERVAL: Duration = Duration::from_millis(100);
/// The longest piece of one event, in bytes.
const MAX_PIECE: usize = 16 << 10;

/// The output so far.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    bytes: Vec<u8>,
    /// How many of the bytes were emitted.
    emitted: usize,
}

impl Transcript {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Emits the new output. A character that is not complete waits for its other bytes.
    pub(super) fn emit(&mut self, context: &ToolContext) {
        let new = self.bytes.get(self.emitted..).unwrap_or_default();
        let complete = complete_length(new);
        self.emit_bytes(complete, context);
    }

    /// Emits the rest, and returns the whole text.
    pub(super) fn finish(mut self, context: &ToolContext) -> String {
        self.emit_bytes(self.bytes.len() - self.emitted, context);
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    fn emit_bytes(&mut self, length: usize, context: &ToolContext) {
        let end = self.emitted + length;
        while self.emitted < end {
            let rest = &self.bytes[self.emitted..end];
            let piece = if rest.len() > MAX_PIECE {
                let piece = &rest[..MAX_PIECE];
                &piece[..complete_length(piece)]
            } else {
                rest
            };
            context.show_output(String::from_utf8_lossy(piece).into_owned());
            self.emitted += piece.len();
        }
    }
}

/// Returns how many bytes there are without an incomplete character at the end; at least 1, if
/// there are more than 3 bytes.
pub(super) fn complete_length(bytes: &[u8]) -> usize {
    let incomplete = match bytes.utf8_chunks().last() {
        Some(chunk) => chunk.invalid().len(),
        None => 0,
    };
    let is_cut = incomplete > 0
        && incomplete < 4
        && std::str::from_utf8(&bytes[bytes.len() - incomplete..]).is_err_and(|error| error.error_len().is_none());
    if is_cut { bytes.len() - incomplete } else { bytes.len() }
}

#[cfg(test)]
mod tests {
    use super::complete_length;

    #[test]
    fn only_a_character_that_can_still_be_completed_waits() {
        for (bytes, expected) in [
            (&b""[..], 0),
            (b"abc", 3),
            ("aé".as_bytes(), 3),
            (b"a\xc3", 1),
            (b"a\xf0\x9f\x98", 1),
            (b"a\xff", 2),
            (b"\xc3", 0),
            (b"\x80\x80\x80\x80\x80", 5),
        ] {
            assert_eq!(complete_length(bytes), expected, "{bytes:?}");
        }
    }
}
