//! Media types (RFC 6838) of files.

/// Media types below `application/` that are text, without the `x-` of unregistered ones.
const TEXT_FORMATS: [&str; 13] = [
    "ecmascript",
    "javascript",
    "json",
    "json-lines",
    "jsonl",
    "jsonlines",
    "ndjson",
    "sh",
    "sql",
    "toml",
    "typescript",
    "xml",
    "yaml",
];

/// Returns whether files of a media type, with or without its parameters, are text.
pub fn is_text_type(media_type: &str) -> bool {
    let kind = media_type.split(';').next().unwrap_or_default().trim();
    let kind = kind.to_ascii_lowercase();
    let Some((group, name)) = kind.split_once('/') else {
        return false;
    };
    let is_written_in = |ending: &str| name.ends_with(ending);
    group == "text"
        || ["+json", "+xml", "+yaml"].into_iter().any(is_written_in)
        || (group == "application" && TEXT_FORMATS.contains(&name.trim_start_matches("x-")))
}
