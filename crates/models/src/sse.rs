//! Decodes server-sent events: bytes in, frames out, in linear time and bounded memory. No IO, no
//! JSON.

use std::borrow::Cow;
use std::mem;

use memchr::memchr2;

/// The most bytes of an unused buffer that are retained for the next event. Larger events are rare.
const RETAINED_BYTES: usize = 64 << 10;

/// One frame of a stream, borrowed from its decoder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The event's name; empty if it has none.
    pub name: Cow<'a, str>,
    /// The event's data. Bytes that are not UTF-8 became U+FFFD.
    pub data: Cow<'a, str>,
}

/// An event is larger than allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server-sent event is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The most bytes that an event may have.
    pub limit: usize,
}

/// Decodes a stream of server-sent events piece by piece.
///
/// One buffer holds the data of an event, another one the beginning of a line whose end has not
/// arrived. All events use the same buffers.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    name: Vec<u8>,
    data: Vec<u8>,
    event: Event,
    after_cr: bool,
    first_line: bool,
}

/// The event in the buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// The event has no data yet.
    Empty,
    HasData,
    /// The data is JSON without fields of the standard.
    Raw,
    /// The event is the last one that was returned.
    Returned,
}

impl SseDecoder {
    /// Makes a decoder of events of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            name: Vec::new(),
            data: Vec::new(),
            event: Event::Empty,
            after_cr: false,
            first_line: true,
        }
    }

    /// Reads the next bytes up to the end of an event, and removes them from `bytes`. `None`: the
    /// event goes on in the bytes after these.
    pub fn next(&mut self, bytes: &mut &[u8]) -> Result<Option<Frame<'_>>, EventTooLarge> {
        self.forget_returned();
        if self.after_cr && !bytes.is_empty() {
            self.after_cr = false;
            *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.check_room(line)?;
            *bytes = &rest[1..];
            if rest[0] == b'\r' {
                self.after_cr = bytes.is_empty();
                *bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
            }
            if self.take_line(line) {
                return Ok(Some(self.frame()));
            }
        }
        self.check_room(bytes)?;
        self.line.extend_from_slice(mem::take(bytes));
        Ok(None)
    }

    /// Ends the stream. Returns the last event if no blank line ended it.
    ///
    /// The standard drops such an event. Some servers omit the last blank line, so the caller
    /// decides.
    pub fn finish(&mut self) -> Option<Frame<'_>> {
        self.forget_returned();
        if !self.line.is_empty() {
            self.take_line(b"");
        }
        self.end_event().then(|| self.frame())
    }

    /// Checks that the event is not too large with these bytes.
    fn check_room(&self, bytes: &[u8]) -> Result<(), EventTooLarge> {
        if self.line.len() + self.data.len() + bytes.len() > self.limit {
            return Err(EventTooLarge { limit: self.limit });
        }
        Ok(())
    }

    /// Takes the end of a line, which may have begun in earlier bytes. Returns whether the line
    /// ended an event with data.
    fn take_line(&mut self, end: &[u8]) -> bool {
        if self.line.is_empty() {
            return self.take_whole_line(end);
        }
        let mut line = mem::take(&mut self.line);
        line.extend_from_slice(end);
        let has_event = self.take_whole_line(&line);
        self.line = line;
        empty(&mut self.line);
        has_event
    }

    fn take_whole_line(&mut self, mut line: &[u8]) -> bool {
        if mem::take(&mut self.first_line) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            return self.end_event();
        }
        self.take_field(line);
        false
    }

    fn take_field(&mut self, line: &[u8]) {
        // After comments, some servers write an error as it is. No field begins with a bracket.
        let begins_raw = self.event == Event::Empty && matches!(line.first(), Some(b'{' | b'['));
        if begins_raw || self.event == Event::Raw {
            self.event = Event::Raw;
            if !line.starts_with(b"data:") {
                self.data.extend_from_slice(line);
                self.data.push(b'\n');
            }
            return;
        }
        let (name, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => {
                if self.event == Event::HasData {
                    self.data.push(b'\n');
                }
                self.event = Event::HasData;
                self.data.extend_from_slice(value);
            }
            b"event" => {
                self.name.clear();
                self.name.extend_from_slice(value);
            }
            // A comment, an unknown field, or a field for reconnections.
            _ => {}
        }
    }

    /// Ends an event. Returns whether it has data; otherwise it is none, and its name is forgotten.
    fn end_event(&mut self) -> bool {
        if self.event == Event::Empty {
            empty(&mut self.name);
            return false;
        }
        self.event = Event::Returned;
        true
    }

    fn frame(&self) -> Frame<'_> {
        Frame {
            name: lossy(&self.name),
            data: lossy(&self.data),
        }
    }

    fn forget_returned(&mut self) {
        if self.event == Event::Returned {
            empty(&mut self.name);
            empty(&mut self.data);
            self.event = Event::Empty;
        }
    }
}

/// Reads bytes as a text. Valid UTF-8, which nearly all texts are, is checked faster than by
/// [`String::from_utf8_lossy`].
fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// Empties a buffer, and retains it for the next event unless it is large.
fn empty(buffer: &mut Vec<u8>) {
    buffer.clear();
    buffer.shrink_to(RETAINED_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes chunks. Returns the events, also the last one if no blank line ended it.
    fn decode(chunks: &[&[u8]]) -> (Vec<Frame<'static>>, Option<Frame<'static>>) {
        let mut decoder = SseDecoder::new(1024);
        let mut events = Vec::new();
        for chunk in chunks {
            let mut bytes = *chunk;
            while let Some(event) = decoder.next(&mut bytes).unwrap() {
                events.push(owned(event));
            }
            assert!(bytes.is_empty());
        }
        (events, decoder.finish().map(owned))
    }

    fn owned(frame: Frame<'_>) -> Frame<'static> {
        Frame {
            name: frame.name.into_owned().into(),
            data: frame.data.into_owned().into(),
        }
    }

    fn data(chunks: &[&[u8]]) -> Vec<Cow<'static, str>> {
        decode(chunks).0.into_iter().map(|event| event.data).collect()
    }

    #[test]
    fn fields_are_read_by_the_standard() {
        let text = b"\xEF\xBB\xBF: hello\nevent: ping\ndata:one\ndata\ndata:  two\nid: 7\nretry: 250\nfuture: x\n\n";
        let expected = Frame {
            name: "ping".into(),
            data: "one\n\n two".into(),
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
    fn json_without_a_field_is_data() {
        assert_eq!(
            data(&[b": hi\n\n{\"a\": 1}\ndata: x\n\ndata: y\n\n"]),
            ["{\"a\": 1}\n", "y"]
        );
        assert_eq!(data(&[b"{\r\n  \"a: 1\"\r\n}\r\n\r\n"]), ["{\n  \"a: 1\"\n}\n"]);
        assert_eq!(data(&[b"data: x\n{no\n\n"]), ["x"]);
    }

    #[test]
    fn an_unterminated_event_is_returned_apart() {
        let (events, rest) = decode(&[b"data: a\n\ndata: b"]);
        assert_eq!((events.len(), rest.unwrap().data.as_ref()), (1, "b"));
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
                .try_for_each(|mut chunk| decoder.next(&mut chunk).map(|event| assert_eq!(event, None)));
            assert_eq!(
                outcome,
                Err(EventTooLarge { limit: 12 }),
                "{}",
                String::from_utf8_lossy(text)
            );
        }
        let mut decoder = SseDecoder::new(12);
        let bytes = b"data: 1\n\n".repeat(1000);
        let mut bytes = bytes.as_slice();
        for _ in 0..1000 {
            assert_eq!(decoder.next(&mut bytes).unwrap().unwrap().data, "1");
        }
        assert_eq!(decoder.next(&mut bytes), Ok(None));
    }

    #[test]
    fn a_large_event_leaves_no_large_buffer() {
        let mut decoder = SseDecoder::new(1 << 20);
        let large = format!("data: {}\n\n", "x".repeat(1 << 19));
        for chunk in large.as_bytes().chunks(1000) {
            decoder.next(&mut &*chunk).unwrap();
        }
        assert_eq!(decoder.next(&mut &b"data: x\n\n"[..]).unwrap().unwrap().data, "x");
        for buffer in [&decoder.line, &decoder.data] {
            assert!(buffer.capacity() <= RETAINED_BYTES, "{}", buffer.capacity());
        }
    }
}
