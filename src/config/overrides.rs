//! Overrides from the command line: `section.key=value`.

use super::error::ConfigError;
use super::settings::KeyPath;

/// Splits `section.key=value` as given to `--set`.
pub fn parse_override(text: &str) -> Result<(String, String), ConfigError> {
    let at = unquoted(text, '=').next();
    let (key, value) = at.map(|at| text.split_at(at)).ok_or_else(|| malformed(text))?;
    let (key, value) = (key.trim(), value.get(1..).unwrap_or_default().trim());
    split_key(key)?;
    Ok((key.to_owned(), value.to_owned()))
}

/// Splits a dotted key; a name with dots is quoted, as in `prices."openai/gpt-4.1".input`.
pub(super) fn split_key(key: &str) -> Result<KeyPath, ConfigError> {
    let mut names = Vec::new();
    let mut start = 0;
    for end in unquoted(key, '.').chain([key.len()]) {
        let name = key.get(start..end).unwrap_or_default().trim();
        let name = ['"', '\'']
            .iter()
            .find_map(|quote| name.strip_prefix(*quote)?.strip_suffix(*quote))
            .unwrap_or(name);
        if name.is_empty() {
            return Err(malformed(key));
        }
        names.push(name.to_owned());
        start = end + 1;
    }
    Ok(names)
}

/// Finds the positions of a character outside of quotes.
fn unquoted(text: &str, wanted: char) -> impl Iterator<Item = usize> {
    let mut quote = None;
    text.char_indices().filter_map(move |(at, c)| {
        match quote {
            Some(open) if open == c => quote = None,
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == wanted => return Some(at),
            Some(_) | None => (),
        }
        None
    })
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
