//! Decodes character references such as `&amp;` and `&#65;`. No IO.

use std::borrow::Cow;

/// The longest reference that is decoded.
const MAX_LENGTH: usize = 12;

/// The frequent names. A page in UTF-8 needs few others.
const NAMED: [(&str, &str); 34] = [
    ("amp", "&"),
    ("lt", "<"),
    ("gt", ">"),
    ("quot", "\""),
    ("apos", "'"),
    ("nbsp", "\u{a0}"),
    ("ndash", "–"),
    ("mdash", "—"),
    ("hellip", "…"),
    ("bull", "•"),
    ("middot", "·"),
    ("lsquo", "‘"),
    ("rsquo", "’"),
    ("sbquo", "‚"),
    ("ldquo", "“"),
    ("rdquo", "”"),
    ("bdquo", "„"),
    ("laquo", "«"),
    ("raquo", "»"),
    ("copy", "©"),
    ("reg", "®"),
    ("trade", "™"),
    ("euro", "€"),
    ("pound", "£"),
    ("sect", "§"),
    ("deg", "°"),
    ("times", "×"),
    ("rarr", "→"),
    ("larr", "←"),
    ("auml", "ä"),
    ("ouml", "ö"),
    ("uuml", "ü"),
    ("szlig", "ß"),
    ("eacute", "é"),
];

/// Returns the text with its references decoded. An unknown one stays as it is.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut output = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        output.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let window = &rest.as_bytes()[..rest.len().min(MAX_LENGTH)];
        let end = window
            .iter()
            .position(|byte| !(byte.is_ascii_alphanumeric() || *byte == b'#'));
        let name = &rest[..end.unwrap_or(window.len())];
        match character(name) {
            Some(character) => {
                output.push_str(&character);
                rest = &rest[name.len()..];
                rest = rest.strip_prefix(';').unwrap_or(rest);
            }
            None => output.push('&'),
        }
    }
    output.push_str(rest);
    Cow::Owned(output)
}

fn character(name: &str) -> Option<Cow<'static, str>> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16),
            None => number.parse(),
        };
        let character = char::from_u32(code.ok()?).filter(|c| *c != '\0');
        return Some(Cow::Owned(character.unwrap_or(char::REPLACEMENT_CHARACTER).to_string()));
    }
    let named = NAMED.iter().find(|(known, _)| *known == name);
    named.map(|(_, character)| Cow::Borrowed(*character))
}
