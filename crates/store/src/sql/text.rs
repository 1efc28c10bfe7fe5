//! Joins parts of statements at compile time: like `concat!`, but for constants as well as
//! literals.

/// Joins constant texts to one.
macro_rules! sql {
    ($($part:expr),+ $(,)?) => {{
        const PARTS: &[&str] = &[$($part),+];
        const BYTES: [u8; $crate::sql::length(PARTS)] = $crate::sql::joined(PARTS);
        const SQL: &str = match std::str::from_utf8(&BYTES) {
            Ok(sql) => sql,
            // Never happens: joined texts are valid UTF-8.
            Err(_) => "",
        };
        SQL
    }};
}
pub(crate) use sql;

/// Returns the bytes of the texts.
pub(crate) const fn length(parts: &[&str]) -> usize {
    let (mut length, mut part) = (0, 0);
    while part < parts.len() {
        length += parts[part].len();
        part += 1;
    }
    length
}

/// Joins the bytes of the texts.
pub(crate) const fn joined<const LENGTH: usize>(parts: &[&str]) -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    let (mut end, mut part) = (0, 0);
    while part < parts.len() {
        let text = parts[part].as_bytes();
        let mut at = 0;
        while at < text.len() {
            bytes[end] = text[at];
            end += 1;
            at += 1;
        }
        part += 1;
    }
    bytes
}
