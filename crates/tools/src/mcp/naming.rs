//! The names of tools for models, made from the names of a server.

use agent::ports::ToolSpec;

/// The longest name of a server, in bytes.
const MAX_SERVER: usize = 32;
/// The bytes of a hash that make a shortened name unique, in hexadecimal digits.
const HASH_DIGITS: usize = 8;

/// Returns whether agents can list a server by this name.
pub(super) fn is_valid_server_name(name: &str) -> bool {
    (1..=MAX_SERVER).contains(&name.len()) && ToolSpec::is_valid_name(name)
}

/// Returns the name of a tool for models. Characters that not every provider takes become `_`. If
/// that or the length changes the name, a hash at the end makes it unique again.
pub(super) fn tool_name(prefix: &str, name: &str) -> String {
    let taken = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let written: String = name.chars().map(|c| if taken(c) { c } else { '_' }).collect();
    let whole = format!("{prefix}{written}");
    if written == name && ToolSpec::is_valid_name(&whole) {
        return whole;
    }
    let hash = blake3::hash(name.as_bytes()).to_hex();
    let room = ToolSpec::MAX_NAME_LENGTH - HASH_DIGITS - 1;
    let start = &whole[..whole.floor_char_boundary(room)];
    format!("{start}_{}", &hash[..HASH_DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_takes_the_name_of_a_tool() {
        assert_eq!(tool_name("weather_", "get-forecast"), "weather_get-forecast");
        assert_eq!(tool_name("", "a"), "a");
        let names = [
            "",
            "a.b",
            "a/b",
            "a b",
            "ä",
            "\u{1f600}",
            &"x".repeat(64),
            &"x".repeat(1_000),
        ];
        let mut made: Vec<String> = names.iter().map(|name| tool_name("weather_", name)).collect();
        for (name, made) in names.iter().zip(&made) {
            assert!(ToolSpec::is_valid_name(made), "{name:?} became {made:?}");
            assert!(made.starts_with("weather_"), "{made}");
        }
        made.sort();
        made.dedup();
        assert_eq!(made.len(), names.len());
    }
}
