//! The forms in which a text may repeat a secret, for all that remove or hide secrets.
//!
//! A reader of a whole text undoes its escapes, however they are mixed. A reader of a stream of
//! bytes searches for the forms that encoders write.

use std::borrow::Cow;
use std::ops::Range;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use memchr::memmem;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

/// The shortest form, in bytes. A shorter one would also match other text.
pub const MIN_FORM: usize = 6;
/// How often a text may be encoded.
const MAX_LAYERS: usize = 4;
/// The longest escape of a byte, such as `&#x0002f;`.
const MAX_ESCAPE: usize = 12;

/// Returns a secret as it is, and as JSON, URLs and base64 write it.
pub fn encoded_forms(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).unwrap_or_default();
    let json = json.get(1..json.len().saturating_sub(1)).unwrap_or_default().to_owned();
    let units = secret.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
    let percent = utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string();
    let mut forms = base64_forms(secret.as_bytes());
    forms.extend([
        secret.to_owned(),
        json.replace('/', "\\/"),
        json,
        units.collect(),
        percent.to_lowercase(),
        percent,
        url::form_urlencoded::byte_serialize(secret.as_bytes()).collect(),
    ]);
    longest_first(forms)
}

/// Returns forms in the order in which to search for them, each once. Leaves out forms that are too
/// short.
pub fn longest_first<F: AsRef<[u8]> + Ord>(mut forms: Vec<F>) -> Vec<F> {
    let length = |form: &F| form.as_ref().len();
    forms.retain(|form| length(form) >= MIN_FORM);
    forms.sort_by(|left, right| length(right).cmp(&length(left)).then_with(|| left.cmp(right)));
    forms.dedup();
    forms
}

/// Returns the base64 of a secret behind any other bytes, without characters that depend on them.
fn base64_forms(secret: &[u8]) -> Vec<String> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let bytes = [&[0; 2][..before.min(2)], secret].concat();
        let characters = (before * 8).div_ceil(6)..bytes.len() * 8 / 6;
        for encoded in [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)] {
            forms.extend(encoded.get(characters.clone()).map(str::to_owned));
        }
    }
    forms
}

/// Returns a text without the escapes of JSON, URLs and HTML.
pub fn unescaped(text: &str) -> Cow<'_, [u8]> {
    let mut bytes = Cow::Borrowed(text.as_bytes());
    for _ in 0..MAX_LAYERS {
        if !bytes.iter().any(|byte| matches!(byte, b'\\' | b'%' | b'&' | b'+')) {
            break;
        }
        let mut output = Vec::with_capacity(bytes.len());
        units(&bytes, |_, unit| output.extend_from_slice(unit));
        bytes = Cow::Owned(output);
    }
    bytes
}

/// Finds where a text has one of these forms, which have no escapes. Ranges do not overlap.
pub fn find<'f>(text: &str, forms: impl IntoIterator<Item = &'f [u8]> + Clone) -> Vec<Range<usize>> {
    let bytes = unescaped(text);
    let mut forms = forms
        .into_iter()
        .filter(|form| memmem::find(&bytes, form).is_some())
        .peekable();
    if forms.peek().is_none() {
        return Vec::new();
    }
    // Few texts have a secret, so that only these take the memory for it.
    let origins = Origins::of(text);
    let mut found: Vec<_> = forms.flat_map(|form| origins.find(form)).collect();
    found.sort_by_key(|range| (range.start, range.end));
    let mut joined: Vec<Range<usize>> = Vec::new();
    for range in found {
        match joined.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
}

/// Returns where a possible beginning of one of these forms starts at the end of a cut text.
pub fn begun_at_end<'f>(text: &str, forms: impl IntoIterator<Item = &'f [u8]>) -> Option<usize> {
    let begun = forms.into_iter().filter_map(|form| {
        let window = text.len().saturating_sub(form.len().saturating_mul(MAX_ESCAPE));
        let window = text.floor_char_boundary(window);
        Some(window + Origins::of(text.get(window..)?).begins_at_end(form)?)
    });
    begun.min()
}

/// A text without escapes, and where its bytes come from.
struct Origins {
    bytes: Vec<u8>,
    /// The position of each byte in the text, and the end of the text.
    from: Vec<usize>,
}

impl Origins {
    fn of(text: &str) -> Self {
        let mut origins = Self {
            bytes: text.as_bytes().to_vec(),
            from: (0..=text.len()).collect(),
        };
        for _ in 0..MAX_LAYERS {
            let (mut bytes, mut from) = (Vec::new(), Vec::new());
            units(&origins.bytes, |at, unit| {
                bytes.extend_from_slice(unit);
                from.extend(std::iter::repeat_n(origins.position(at), unit.len()));
            });
            from.push(text.len());
            origins = Self { bytes, from };
        }
        origins
    }

    fn position(&self, at: usize) -> usize {
        self.from.get(at).copied().unwrap_or_default()
    }

    fn find(&self, form: &[u8]) -> Vec<Range<usize>> {
        let found = memmem::find_iter(&self.bytes, form);
        found
            .map(|at| self.position(at)..self.position(at + form.len()))
            .collect()
    }

    fn begins_at_end(&self, form: &[u8]) -> Option<usize> {
        // The last bytes may be a part of an escape.
        let window = self.bytes.len().saturating_sub(MAX_ESCAPE);
        let last = self.bytes.get(window..)?;
        let escape = last.iter().position(|byte| matches!(byte, b'%' | b'&'));
        let ends = [Some(self.bytes.len()), escape.map(|at| window + at)];
        let begun = ends.into_iter().flatten().filter_map(|end| {
            let begins = |length: &usize| self.bytes.get(end - length..end) == form.get(..*length);
            let length = (1..=end.min(form.len())).rev().find(begins)?;
            Some(self.position(end - length))
        });
        begun.min()
    }
}

/// Passes on each byte without escapes, and where it was.
fn units(bytes: &[u8], mut pass: impl FnMut(usize, &[u8])) {
    let mut at = 0;
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let (unit, length) = unit(rest);
        match unit {
            Unit::Byte(byte) => pass(at, &[byte]),
            Unit::Character(character) => pass(at, character.encode_utf8(&mut [0; 4]).as_bytes()),
            Unit::Nothing => {}
        }
        at += length;
    }
}

/// The meaning of an escape or of a plain byte.
#[derive(Debug, Clone, Copy)]
enum Unit {
    Byte(u8),
    Character(char),
    Nothing,
}

/// Reads one byte or one escape. Returns also its length.
fn unit(bytes: &[u8]) -> (Unit, usize) {
    let escape = match bytes {
        [b'+', ..] => Some((Unit::Byte(b' '), 1)),
        // The end of a text that was cut.
        [b'\\', b'u', rest @ ..] if rest.len() < 4 && rest.iter().all(u8::is_ascii_hexdigit) => {
            Some((Unit::Nothing, bytes.len()))
        }
        [b'\\', b'u', rest @ ..] => code_unit(rest).map(|(character, length)| (Unit::Character(character), length + 2)),
        [b'\\', b'x', rest @ ..] => hex(rest, 2).and_then(|code| Some((Unit::Byte(u8::try_from(code).ok()?), 4))),
        [b'\\', b'n', ..] => Some((Unit::Byte(b'\n'), 2)),
        [b'\\', b'r', ..] => Some((Unit::Byte(b'\r'), 2)),
        [b'\\', b't', ..] => Some((Unit::Byte(b'\t'), 2)),
        [b'\\', other, ..] => Some((Unit::Byte(*other), 2)),
        [b'\\'] => Some((Unit::Nothing, 1)),
        [b'%', rest @ ..] => hex(rest, 2).and_then(|code| Some((Unit::Byte(u8::try_from(code).ok()?), 3))),
        [b'&', rest @ ..] => reference(rest).map(|(character, length)| (Unit::Character(character), length + 1)),
        _ => None,
    };
    escape.unwrap_or_else(|| (Unit::Byte(bytes.first().copied().unwrap_or_default()), 1))
}

/// Reads the digits of `\uXXXX`, and of the second half of a character that has two.
fn code_unit(bytes: &[u8]) -> Option<(char, usize)> {
    let first = hex(bytes, 4)?;
    if let Some(character) = char::from_u32(first) {
        return Some((character, 4));
    }
    let second = hex(bytes.get(4..)?.strip_prefix(b"\\u")?, 4)?;
    let units = [u16::try_from(first).ok()?, u16::try_from(second).ok()?];
    let character = char::decode_utf16(units).next()?.ok()?;
    Some((character, 10))
}

/// Reads a character reference of HTML behind its `&`.
fn reference(bytes: &[u8]) -> Option<(char, usize)> {
    for (name, character) in [
        ("amp;", '&'),
        ("lt;", '<'),
        ("gt;", '>'),
        ("quot;", '"'),
        ("apos;", '\''),
    ] {
        if bytes.starts_with(name.as_bytes()) {
            return Some((character, name.len()));
        }
    }
    let end = bytes.iter().take(MAX_ESCAPE).position(|byte| *byte == b';')?;
    let number = std::str::from_utf8(bytes.get(..end)?).ok()?.strip_prefix('#')?;
    let code = match number.strip_prefix(['x', 'X']) {
        Some(digits) => u32::from_str_radix(digits, 16).ok()?,
        None => number.parse().ok()?,
    };
    Some((char::from_u32(code)?, end + 1))
}

fn hex(bytes: &[u8], digits: usize) -> Option<u32> {
    let digits = bytes
        .get(..digits)
        .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))?;
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_undone_with_their_positions() {
        for (text, expected, at) in [
            ("x se/cret+y", "se/cret", 2..9),
            (r"x se\/cret", "se/cret", 2..10),
            (r"\u0073\u0065\u002f\u0063ret!", "se/cret", 0..27),
            (r"a se\\\/cret", "se/cret", 2..12),
            (r#"{"a": "se/cret\"quoted"}"#, "se/cret", 7..14),
            ("?a=se%2Fcret&b", "se/cret", 3..12),
            ("?a=se%252fcret", "se/cret", 3..14),
            ("<p>se&#47;cr&#x65;t</p>", "se/cret", 3..19),
            (r"\ud83d\ude00 secret", "😀 sec", 0..16),
        ] {
            assert_eq!(find(text, [expected.as_bytes()]), [at], "{text}");
        }
        assert!(find("a secret", [&b"secrets"[..]]).is_empty());
    }

    #[test]
    fn the_base64_of_a_secret_is_found_behind_any_text() {
        let secret = "hunter2-SECRET-abcdef";
        let forms = encoded_forms(secret);
        for before in ["", "m", "me", "me:", "user:", "a/b?:"] {
            for after in ["", ":x", "~~~"] {
                let encoded = STANDARD_NO_PAD.encode(format!("{before}{secret}{after}"));
                assert!(forms.iter().any(|form| encoded.contains(form)), "{encoded}");
            }
        }
        assert!(
            !forms
                .iter()
                .any(|form| STANDARD_NO_PAD.encode("hunter2-OTHER-abcdefghijk").contains(form))
        );
    }
}
