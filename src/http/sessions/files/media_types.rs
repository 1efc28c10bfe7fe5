//! The media type of a file by its name. The bytes are not looked at.

/// The type of all other files.
const UNKNOWN: &str = "application/octet-stream";

/// Extensions in lower case, and their media types.
const TYPES: &[(&str, &str)] = &[
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("c", "text/plain; charset=utf-8"),
    ("cpp", "text/plain; charset=utf-8"),
    ("css", "text/css; charset=utf-8"),
    ("csv", "text/csv; charset=utf-8"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    ("gif", "image/gif"),
    ("go", "text/plain; charset=utf-8"),
    ("gz", "application/gzip"),
    ("h", "text/plain; charset=utf-8"),
    ("htm", "text/html; charset=utf-8"),
    ("html", "text/html; charset=utf-8"),
    ("ico", "image/x-icon"),
    ("ini", "text/plain; charset=utf-8"),
    ("java", "text/plain; charset=utf-8"),
    ("jpeg", "image/jpeg"),
    ("jpg", "image/jpeg"),
    ("js", "text/javascript; charset=utf-8"),
    ("json", "application/json"),
    ("jsonl", "application/jsonl"),
    ("log", "text/plain; charset=utf-8"),
    ("md", "text/markdown; charset=utf-8"),
    ("mjs", "text/javascript; charset=utf-8"),
    ("mp3", "audio/mpeg"),
    ("mp4", "video/mp4"),
    ("ogg", "audio/ogg"),
    ("parquet", "application/vnd.apache.parquet"),
    ("pdf", "application/pdf"),
    ("png", "image/png"),
    (
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    ("py", "text/x-python; charset=utf-8"),
    ("rs", "text/plain; charset=utf-8"),
    ("sh", "text/x-shellscript; charset=utf-8"),
    ("sql", "application/sql"),
    ("svg", "image/svg+xml"),
    ("tar", "application/x-tar"),
    ("tiff", "image/tiff"),
    ("toml", "application/toml"),
    ("ts", "text/plain; charset=utf-8"),
    ("tsv", "text/tab-separated-values; charset=utf-8"),
    ("txt", "text/plain; charset=utf-8"),
    ("wasm", "application/wasm"),
    ("wav", "audio/wav"),
    ("webm", "video/webm"),
    ("webp", "image/webp"),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    ("xml", "application/xml"),
    ("yaml", "application/yaml"),
    ("yml", "application/yaml"),
    ("zip", "application/zip"),
    ("zst", "application/zstd"),
];

/// Returns the media type of a file with the name.
pub(in crate::http) fn media_type(name: &str) -> &'static str {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let extension = extension.to_ascii_lowercase();
    let found = TYPES.binary_search_by(|(known, _)| (*known).cmp(&extension));
    found
        .ok()
        .and_then(|index| TYPES.get(index))
        .map_or(UNKNOWN, |(_, kind)| kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_decides() {
        assert!(TYPES.is_sorted());
        for (name, kind) in [
            ("a.md", "text/markdown; charset=utf-8"),
            ("A.PNG", "image/png"),
            ("a.tar.zst", "application/zstd"),
            ("avif.avif", "image/avif"),
            ("Makefile", UNKNOWN),
            ("a.unknown", UNKNOWN),
            (".gitignore", UNKNOWN),
            ("md", UNKNOWN),
        ] {
            assert_eq!(media_type(name), kind, "{name}");
        }
    }
}
