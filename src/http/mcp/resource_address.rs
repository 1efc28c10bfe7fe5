//! The addresses of resources: sessions, their messages and their files.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

use values::ids::SessionId;
use workspace::FilePath;

/// The scheme, with its separator.
const SCHEME: &str = "session://";
/// The longest address, in bytes.
const MAX_BYTES: usize = 16 << 10;
/// The characters that an address can't have literally in a path.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'\\')
    .add(b'^')
    .add(b'|');

/// The object that an address names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ResourceAddress {
    /// A session with its newest messages.
    Session(SessionId),
    /// Messages of a session from an index.
    Messages(SessionId, u64),
    /// A directory of a session; `None` is the root.
    Directory(SessionId, Option<FilePath>),
    /// A file of a session.
    File(SessionId, FilePath),
}

impl ResourceAddress {
    /// Reads an address; `None` if no resource has it.
    pub(super) fn parse(uri: &str) -> Option<Self> {
        let rest = uri.strip_prefix(SCHEME).filter(|_| uri.len() <= MAX_BYTES)?;
        let (session, rest) = rest.split_once('/').map_or((rest, None), |(id, rest)| (id, Some(rest)));
        let session_id = session.parse().ok()?;
        let Some(rest) = rest else {
            return Some(Self::Session(session_id));
        };
        let (kind, rest) = rest.split_once('/').unwrap_or((rest, ""));
        match (kind, rest) {
            ("messages", index) => Some(Self::Messages(session_id, parse_index(index)?)),
            ("files", "") => Some(Self::Directory(session_id, None)),
            ("files", path) if path.ends_with('/') => Some(Self::Directory(
                session_id,
                Some(parse_path(path.trim_end_matches('/'))?),
            )),
            ("files", path) => Some(Self::File(session_id, parse_path(path)?)),
            _ => None,
        }
    }

    /// Writes the address.
    pub(super) fn uri(&self) -> String {
        let escaped = |path: &FilePath| utf8_percent_encode(path.as_str(), ESCAPED).to_string();
        match self {
            Self::Session(id) => format!("{SCHEME}{id}"),
            Self::Messages(id, from) => format!("{SCHEME}{id}/messages/{from}"),
            Self::Directory(id, None) => format!("{SCHEME}{id}/files/"),
            Self::Directory(id, Some(path)) => format!("{SCHEME}{id}/files/{}/", escaped(path)),
            Self::File(id, path) => format!("{SCHEME}{id}/files/{}", escaped(path)),
        }
    }
}

fn parse_index(text: &str) -> Option<u64> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn parse_path(text: &str) -> Option<FilePath> {
    let decoded = percent_decode_str(text).decode_utf8().ok()?;
    FilePath::parse(&decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11";

    #[test]
    fn addresses_are_read_as_they_are_written() {
        for rest in [
            "",
            "/messages/0",
            "/messages/120",
            "/files/",
            "/files/a/b/",
            "/files/a/b.txt",
            "/files/a%20b/%C3%A9%23%3F.md",
        ] {
            let uri = format!("session://{ID}{rest}");
            let address = ResourceAddress::parse(&uri).unwrap();
            assert_eq!(address.uri(), uri);
        }
        let uri = format!("session://{ID}/files");
        let root = ResourceAddress::parse(&uri).unwrap();
        assert_eq!(root, ResourceAddress::Directory(ID.parse().unwrap(), None));
    }

    #[test]
    fn other_addresses_name_nothing() {
        for uri in [
            "",
            "session://",
            "session://x",
            "file:///etc/passwd",
            &format!("SESSION://{ID}"),
            &format!("session://{ID}/"),
            &format!("session://{ID}/messages"),
            &format!("session://{ID}/messages/-1"),
            &format!("session://{ID}/messages/+1"),
            &format!("session://{ID}/messages/99999999999999999999"),
            &format!("session://{ID}/files/../secret"),
            &format!("session://{ID}/files/%2e%2e/secret"),
            &format!("session://{ID}/files//etc/passwd"),
            &format!("session://{ID}/files/%2fetc/passwd"),
            &format!("session://{ID}/files/a%00b"),
            &format!("session://{ID}/files/a%ff"),
            &format!("session://{ID}/files/{}", "a/".repeat(10_000)),
            &format!("session://{ID}/other"),
        ] {
            assert_eq!(ResourceAddress::parse(uri), None, "{uri}");
        }
    }
}
