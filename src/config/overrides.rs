//! Overrides from the command line: `section.key=value`.

use toml::{Table, Value};

use super::error::ConfigError;
use super::origin::KeyPath;

/// Splits `section.key=value` as given to `--set`, at the first `=` that ends a key.
pub fn parse_override(text: &str) -> Result<(String, String), ConfigError> {
    let mut halves = text.match_indices('=').map(|(at, _)| (&text[..at], &text[at + 1..]));
    let found = halves.find(|(key, _)| split_key(key).is_ok());
    let (key, value) = found.ok_or_else(|| malformed(text))?;
    Ok((key.trim().to_owned(), value.trim().to_owned()))
}

/// Splits a dotted key, as TOML has it; a name with dots is quoted, as in
/// `prices."openai/gpt-4.1".input`.
pub(super) fn split_key(key: &str) -> Result<KeyPath, ConfigError> {
    let mut table: Table = format!("{key} = 0").parse().map_err(|_| malformed(key))?;
    let mut names = KeyPath::new();
    loop {
        let mut entries = table.into_iter();
        let (Some((name, value)), None) = (entries.next(), entries.next()) else {
            return Err(malformed(key));
        };
        names.push(name);
        match value {
            Value::Table(below) => table = below,
            _ => return Ok(names),
        }
    }
}

/// Makes the error without the value, which may be a secret.
fn malformed(text: &str) -> ConfigError {
    ConfigError::OverrideSyntax {
        text: text.split('=').next().unwrap_or_default().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overrides_are_split_at_the_first_equals_sign() {
        for (text, key, value) in [
            ("http.listen=[::1]:0", "http.listen", "[::1]:0"),
            ("board.url=", "board.url", ""),
            ("store.url=postgres://h/d?a=b", "store.url", "postgres://h/d?a=b"),
            ("prices.\"a/b=c\".input=1", "prices.\"a/b=c\".input", "1"),
        ] {
            assert_eq!(parse_override(text).unwrap(), (key.to_owned(), value.to_owned()));
        }
        assert_eq!(
            split_key("prices.\"a/b-4.1\".input").unwrap(),
            ["prices", "a/b-4.1", "input"]
        );
        for text in ["", "http.listen", "=1", "http..listen=1", ".a=1"] {
            assert!(parse_override(text).is_err(), "{text}");
        }
    }
}
