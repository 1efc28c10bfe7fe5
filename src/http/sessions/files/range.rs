//! One range of bytes (RFC 9110). Other ranges are ignored, as the standard allows.

use axum::http::{HeaderMap, header};

use crate::http::parameters::parse_number;
use values::session::Hash;

/// A range of bytes that a file has, with both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteRange {
    first: u64,
    last: u64,
}

/// The bytes of a file that a request wants.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// All bytes.
    All,
    /// Some bytes.
    Part(ByteRange),
    /// Bytes that the file does not have.
    Nothing,
}

impl ByteRange {
    /// Reads the headers `Range` and `If-Range` of a request for a file.
    pub(super) fn wanted(headers: &HeaderMap, hash: Hash, size: u64) -> Wanted {
        let mut ranges = headers.get_all(header::RANGE).iter();
        let (Some(range), None) = (ranges.next(), ranges.next()) else {
            return Wanted::All;
        };
        // The tag must be exactly the file's tag. A file has no date.
        let is_other = |tag: &axum::http::HeaderValue| tag.as_bytes() != format!("\"{hash}\"").as_bytes();
        if headers.get_all(header::IF_RANGE).iter().any(is_other) {
            return Wanted::All;
        }
        range.to_str().map_or(Wanted::All, |text| parse(text, size))
    }

    /// Returns these bytes of a file.
    pub(super) fn of(self, bytes: &[u8]) -> &[u8] {
        let (Ok(first), Ok(last)) = (usize::try_from(self.first), usize::try_from(self.last)) else {
            return &[];
        };
        bytes.get(first..=last).unwrap_or_default()
    }

    /// Returns the value of the header `Content-Range`.
    pub(super) fn content_range(self, size: u64) -> String {
        format!("bytes {}-{}/{size}", self.first, self.last)
    }
}

fn parse(text: &str, size: u64) -> Wanted {
    let Some((unit, range)) = text.split_once('=') else {
        return Wanted::All;
    };
    let Some((first, last)) = range.trim().split_once('-') else {
        return Wanted::All;
    };
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return Wanted::All;
    }
    let range = match (first, last) {
        ("", length) => {
            parse_number::<u64>(length).map(|length| (size.saturating_sub(length), size.checked_sub(1), length > 0))
        }
        (first, "") => parse_number(first).map(|first| (first, size.checked_sub(1), true)),
        (first, last) => match (parse_number::<u64>(first), parse_number::<u64>(last)) {
            (Some(first), Some(last)) if first <= last => {
                Some((first, size.checked_sub(1).map(|end| end.min(last)), true))
            }
            _ => None,
        },
    };
    match range {
        None => Wanted::All,
        Some((first, Some(last), true)) if first <= last => Wanted::Part(ByteRange { first, last }),
        Some(_) => Wanted::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::session::hash_content;

    #[test]
    fn one_range_is_read_and_all_else_is_ignored() {
        let part = |first, last| Wanted::Part(ByteRange { first, last });
        for (text, size, wanted) in [
            ("bytes=0-4", 10, part(0, 4)),
            ("bytes=4-4", 10, part(4, 4)),
            ("bytes=5-", 10, part(5, 9)),
            ("bytes=5-99", 10, part(5, 9)),
            ("bytes=-3", 10, part(7, 9)),
            ("bytes=-99", 10, part(0, 9)),
            ("Bytes = 1-2", 10, part(1, 2)),
            ("bytes=10-", 10, Wanted::Nothing),
            ("bytes=10-20", 10, Wanted::Nothing),
            ("bytes=-0", 10, Wanted::Nothing),
            ("bytes=0-", 0, Wanted::Nothing),
            ("bytes=-1", 0, Wanted::Nothing),
            ("bytes=18446744073709551615-", 10, Wanted::Nothing),
            ("bytes=18446744073709551616-", 10, Wanted::All),
            ("bytes=4-2", 10, Wanted::All),
            ("bytes=0-1,3-4", 10, Wanted::All),
            ("bytes=+1-2", 10, Wanted::All),
            ("bytes=a-b", 10, Wanted::All),
            ("bytes=-", 10, Wanted::All),
            ("bytes", 10, Wanted::All),
            ("items=0-4", 10, Wanted::All),
        ] {
            let headers = HeaderMap::from_iter([(header::RANGE, text.parse().unwrap())]);
            assert_eq!(ByteRange::wanted(&headers, hash_content(b""), size), wanted, "{text}");
        }
    }

    #[test]
    fn a_range_applies_to_one_version_of_a_file() {
        let hash = hash_content(b"x");
        let wanted = |tag: String| {
            let headers = [(header::RANGE, "bytes=0-0".to_owned()), (header::IF_RANGE, tag)];
            let headers = headers.map(|(name, value)| (name, value.parse().unwrap()));
            ByteRange::wanted(&headers.into_iter().collect(), hash, 1)
        };
        assert_eq!(
            wanted(format!("\"{hash}\"")),
            Wanted::Part(ByteRange { first: 0, last: 0 })
        );
        assert_eq!(wanted(format!("W/\"{hash}\"")), Wanted::All);
        assert_eq!(wanted("Tue, 24 Nov 2026 00:00:00 GMT".to_owned()), Wanted::All);
    }
}
