//! Values that may contain a secret, and where secrets are read from.
//!
//! No secret is shown here: `Debug` and `Display` are redacted, and messages about bad values do
//! not repeat them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Deserializer};

use super::error::ConfigError;
use super::origin::{Origin, dotted};
use values::settings::{path, secret_text, variable_name};

/// The replacement of a secret.
pub(super) const REDACTED: &str = "[redacted]";

/// A URL that may contain a password. It is displayed without the password.
#[derive(Clone)]
pub struct SecretUrl(SecretString);

impl SecretUrl {
    /// Returns the whole URL. It must not be logged.
    pub fn expose(&self) -> &str {
        self.0.expose_secret()
    }
}

impl fmt::Display for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact_url(self.expose()))
    }
}

impl fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", redact_url(self.expose()))
    }
}

/// Reads a URL with one of these schemes. The scheme `""` allows the empty string.
pub(super) fn secret_url<'de, D: Deserializer<'de>>(
    deserializer: D,
    schemes: &[&str],
    wanted: &str,
) -> Result<SecretUrl, D::Error> {
    let parse = |text: &str| {
        let url = text.trim();
        let scheme = match url.split_once("://") {
            Some((scheme, address)) if !scheme.is_empty() && !address.is_empty() => scheme,
            None if url.is_empty() => "",
            _ => return None,
        };
        schemes.contains(&scheme).then(|| SecretUrl(SecretString::from(url)))
    };
    secret_text(deserializer, wanted, parse)
}

/// Where a secret is found. The file wins.
#[derive(Default, Deserialize)]
pub(super) struct SecretSource {
    /// The environment variable that holds it.
    #[serde(
        default,
        alias = "api_key_env",
        alias = "state_key_env",
        alias = "seal_key_env",
        deserialize_with = "variable_name"
    )]
    pub(super) env: Option<String>,
    /// The file that holds it.
    #[serde(
        default,
        alias = "api_key_file",
        alias = "state_key_file",
        alias = "seal_key_file",
        deserialize_with = "path"
    )]
    pub(super) file: Option<PathBuf>,
}

impl SecretSource {
    /// Returns where the secret is found, for messages.
    pub(super) fn shown(&self) -> Option<String> {
        let file = self.file.as_ref().map(|path| path.display().to_string());
        file.or_else(|| self.env.clone())
    }
}

/// Hides the password and the secret query values of a URL. Hides everything in a text that is not
/// a URL.
///
/// An unescaped password may contain `/` or `@`, so everything up to the last `@` counts as
/// credentials. With a `?` before that `@`, the parts can't be distinguished, and nothing is shown.
pub(super) fn redact_url(url: &str) -> String {
    if url.is_empty() || url.starts_with("sqlite:") {
        return url.to_owned();
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return REDACTED.to_owned();
    };
    let (user, address) = match rest.rsplit_once('@') {
        Some((credentials, _)) if credentials.contains('?') => {
            return format!("{scheme}://{REDACTED}");
        }
        Some((credentials, address)) => match credentials.split_once(':') {
            Some((user, _)) => (format!("{user}:{REDACTED}@"), address),
            None => (format!("{credentials}@"), address),
        },
        None => (String::new(), rest),
    };
    let address = match address.split_once('?') {
        Some((address, query)) => {
            let pairs: Vec<String> = query.split('&').map(redact_pair).collect();
            format!("{address}?{}", pairs.join("&"))
        }
        None => address.to_owned(),
    };
    format!("{scheme}://{user}{address}")
}

fn redact_pair(pair: &str) -> String {
    let name = pair.split('=').next().unwrap_or_default();
    let secret = ["pass", "pwd", "secret", "token", "key", "auth"]
        .iter()
        .any(|word| name.to_lowercase().contains(word));
    if secret {
        format!("{name}={REDACTED}")
    } else {
        pair.to_owned()
    }
}

/// Reads the secret of a key from a file, without a final line end. An empty file is an error.
pub(super) fn read_secret(key: &[String], origin: Origin, path: &Path) -> Result<String, ConfigError> {
    let text = fs::read_to_string(path).map(|text| text.trim_start_matches('\u{feff}').trim().to_owned());
    let secret = text.and_then(|secret| match secret.as_str() {
        "" => Err(io::Error::new(io::ErrorKind::InvalidData, "the file is empty")),
        _ => Ok(secret),
    });
    secret.map_err(|source| ConfigError::ReadSecret {
        key: dotted(key),
        origin,
        path: path.to_owned(),
        source,
    })
}

/// Reads a secret from the environment. An unset or blank variable has none.
pub(super) fn secret_variable(
    environment: &BTreeMap<String, String>,
    variable: &str,
) -> Result<Option<SecretString>, ConfigError> {
    let secret = environment.get(variable).map_or("", |secret| secret.trim());
    if secret.contains(char::REPLACEMENT_CHARACTER) {
        return Err(ConfigError::NotUnicode {
            variable: variable.to_owned(),
        });
    }
    Ok((!secret.is_empty()).then(|| SecretString::from(secret)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn passwords_are_hidden_in_urls() {
        for (url, shown) in [
            ("", ""),
            ("sqlite://data/a@b.db?mode=rwc", "sqlite://data/a@b.db?mode=rwc"),
            ("postgres://db/x", "postgres://db/x"),
            ("postgres://app@db/x", "postgres://app@db/x"),
            ("postgres://app:hunter2@db/x", "postgres://app:[redacted]@db/x"),
            ("postgres://app:hunt/er@2@db/x", "postgres://app:[redacted]@db/x"),
            ("postgres://app:hunt?er2@db/x", "postgres://[redacted]"),
            ("postgres://db:1/x?password=a@hunter2", "postgres://[redacted]"),
            (
                "postgres://db/x?sslmode=require&password=hunter2",
                "postgres://db/x?sslmode=require&password=[redacted]",
            ),
            ("redis://:hunter2@cache:6379/0", "redis://:[redacted]@cache:6379/0"),
            ("hunter2", "[redacted]"),
        ] {
            assert_eq!(redact_url(url), shown, "for {url}");
            let url = SecretUrl(SecretString::from(url));
            assert_eq!(url.to_string(), shown);
            assert_eq!(format!("{url:?}"), format!("{shown:?}"));
        }
    }

    #[test]
    fn a_blank_variable_holds_no_secret() {
        let environment = BTreeMap::from([
            ("BLANK".to_owned(), " ".to_owned()),
            ("LOSSY".to_owned(), "sk-\u{FFFD}".to_owned()),
            ("SET".to_owned(), " sk-1\n".to_owned()),
        ]);
        assert!(secret_variable(&environment, "BLANK").unwrap().is_none());
        assert!(secret_variable(&environment, "UNSET").unwrap().is_none());
        let secret = secret_variable(&environment, "SET").unwrap().unwrap();
        assert_eq!(secret.expose_secret(), "sk-1");
        assert!(secret_variable(&environment, "LOSSY").is_err());
    }
    proptest! {
        #[test]
        fn no_password_survives(password in "[!-~]{1,12}") {
            let secret = format!("\u{a7}{password}");
            for url in [
                format!("postgres://app:{secret}@db:5432/x"),
                format!("postgres://db/x?sslmode=require&password={}", secret.replace('&', "")),
                format!("redis://:{secret}@cache"),
            ] {
                prop_assert!(!redact_url(&url).contains('\u{a7}'), "{}", redact_url(&url));
            }
        }
    }
}
