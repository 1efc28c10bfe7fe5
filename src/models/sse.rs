//! Decodes server-sent events: bytes in, frames out, in linear time and bounded memory. No IO, no
//! JSON.

use std::mem;

use memchr::memchr2;

/// One frame of a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame {
    /// The event's name; empty if it has none.
    pub name: String,
    /// The event's data. Bytes that are not UTF-8 became U+FFFD.
    pub data: String,
}

/// An event is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The most bytes that an event may have.
    pub limit: usize,
}

/// Decodes a stream of server-sent events piece by piece.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    name: String,
    after_cr: bool,
    first_line: bool,
}

impl SseDecoder {
    /// Makes a decoder of events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            name: String::new(),
            after_cr: false,
            first_line: true,
        }
    }

    /// Takes the next bytes and appends the events that they complete.
    pub fn push(&mut self, mut bytes: &[u8], events: &mut Vec<Frame>) -> Result<(), EventTooLarge> {
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            self.extend_line(&bytes[..end])?;
            self.end_line(events);
            let ended_by_cr = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            if ended_by_cr {
                self.after_cr = bytes.is_empty();
                bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
        }
        self.extend_line(bytes)
    }

    /// Ends the stream. Returns the last event if no blank line ended it.
    ///
    /// The standard drops such an event. Some servers omit the last blank line, so the caller
    /// decides.
    pub fn finish(mut self) -> Option<Frame> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events);
        }
        self.dispatch(&mut events);
        events.pop()
    }

    fn extend_line(&mut self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + self.data.len() + bytes.len() > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    fn end_line(&mut self, events: &mut Vec<Frame>) {
        let line = mem::take(&mut self.line);
        let mut text = line.as_slice();
        if mem::take(&mut self.first_line) {
            text = text.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(text);
        }
        if text.is_empty() {
            self.dispatch(events);
        } else {
            self.field(text);
        }
        // The buffer is reused for the next line.
        self.line = line;
        self.line.clear();
    }

    fn field(&mut self, line: &[u8]) {
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.data.extend_from_slice(value);
            }
            b"event" => self.name = lossy(value.to_vec()),
            // A comment, an unknown field, or a field for reconnections.
            _ => {}
        }
    }

    fn dispatch(&mut self, events: &mut Vec<Frame>) {
        let event = Frame {
            name: mem::take(&mut self.name),
            data: lossy(mem::take(&mut self.data)),
        };
        if mem::take(&mut self.has_data) {
            events.push(event);
        }
    }
}

/// Converts bytes to a text. Does not copy valid UTF-8, which nearly all texts are.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> (Vec<Frame>, Option<Frame>) {
        let mut decoder = SseDecoder::new(1024);
        let mut events = Vec::new();
        for chunk in chunks {
            decoder.push(chunk, &mut events).unwrap();
        }
        (events, decoder.finish())
    }

    fn data(chunks: &[&[u8]]) -> Vec<String> {
        decode(chunks).0.into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn lines_end_with_lf_cr_or_crlf_even_when_split() {
        assert_eq!(data(&[b"data: a\n\ndata: b\r\rdata: c\r\n\r\n"]), ["a", "b", "c"]);
        assert_eq!(data(&[b"data: a\r", b"\n\r", b"\n", b"data: b\r", b"\r"]), ["a", "b"]);
        assert_eq!(data(&[b"da", b"ta: \xe2\x82", b"", b"\xac\r", b"", b"\n\r\n"]), ["€"]);
    }

    #[test]
    fn fields_are_read_by_the_standard() {
        let text = b"\xEF\xBB\xBF: hello\nevent: ping\ndata:one\ndata\ndata:  two\nid: 7\nretry: 250\nfuture: x\n\n";
        let expected = Frame {
            name: "ping".to_owned(),
            data: "one\n\n two".to_owned(),
        };
        assert_eq!(decode(&[text]), (vec![expected], None));
        assert_eq!(
            data(&[b"\xEF", b"\xBB", b"\xBFdata: x\n\n"]),
            ["x"],
            "the mark may be split"
        );
        assert_eq!(data(&[b"id: a\0b\nretry: 1s\ndata: x\n\n"]), ["x"]);
    }

    #[test]
    fn an_event_without_data_is_none_and_its_name_is_forgotten() {
        let events = decode(&[b"event: ping\n\n: comment\n\ndata\n\n"]).0;
        assert_eq!(events, [Frame::default()]);
    }

    #[test]
    fn an_unterminated_event_is_returned_apart() {
        let (events, rest) = decode(&[b"data: a\n\ndata: b"]);
        assert_eq!((events.len(), rest.unwrap().data.as_str()), (1, "b"));
        let (events, rest) = decode(&[b"data: a\n\n: half a comm"]);
        assert_eq!((events.len(), rest), (1, None));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced() {
        assert_eq!(data(&[b"data: a\xFFb\n\n"]), ["a\u{FFFD}b"]);
    }

    #[test]
    fn an_event_that_is_too_large_is_an_error() {
        for text in [
            &b"data: 0123456789"[..],
            b"data: 012\ndata: 345\ndata: 678",
            b": 0123456789012",
        ] {
            let mut decoder = SseDecoder::new(12);
            let outcome = text
                .chunks(3)
                .try_for_each(|chunk| decoder.push(chunk, &mut Vec::new()));
            assert_eq!(
                outcome,
                Err(EventTooLarge { limit: 12 }),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
        let mut events = Vec::new();
        let mut decoder = SseDecoder::new(12);
        decoder.push(&b"data: 1\n\n".repeat(1000), &mut events).unwrap();
        assert_eq!(events.len(), 1000);
    }
}
