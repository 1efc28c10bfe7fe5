//! Shows the settings in force, as `check-config` prints them.

use std::fmt;

use toml::Value;

use super::Config;
use super::secrets::{REDACTED, redact_url};
use super::settings::{KeyPath, Settings, dotted};

/// Every key in force with its value and where it was set, one a line, without secrets.
#[derive(Clone, Copy)]
pub struct Explanation<'a> {
    settings: &'a Settings,
    config: &'a Config,
}

impl<'a> Explanation<'a> {
    pub(super) fn new(settings: &'a Settings, config: &'a Config) -> Self {
        Self { settings, config }
    }

    /// Returns whether the secret of a line was found.
    fn note(&self, path: &KeyPath) -> &'static str {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match names.as_slice() {
            ["providers", name, "api_key_env" | "api_key_file"] => {
                let provider = self.config.providers.get(*name);
                match provider.and_then(|provider| provider.api_key.as_ref()) {
                    Some(_) => " (key found)",
                    None => " (no key found)",
                }
            }
            [
                "providers",
                name,
                "aws",
                key @ ("access_key_id_env" | "secret_access_key_env" | "session_token_env"),
            ] => {
                let aws = self.config.providers.get(*name).map(|provider| &provider.aws);
                let is_found = aws.is_some_and(|aws| match *key {
                    "access_key_id_env" => aws.access_key_id.is_some(),
                    "secret_access_key_env" => aws.secret_access_key.is_some(),
                    _ => aws.session_token.is_some(),
                });
                if is_found { " (found)" } else { " (not found)" }
            }
            ["webhooks", "secrets", name, _] => {
                let source = self.config.webhooks.secrets.get(*name);
                match source.and_then(|source| source.secret.as_ref()) {
                    Some(_) => " (secret found)",
                    None => " (no secret found)",
                }
            }
            _ => "",
        }
    }
}

impl fmt::Display for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, setting) in self.settings.iter() {
            if matches!(&setting.value, Value::Table(_)) {
                continue;
            }
            let line = format!("{} = {}", dotted(path), shown(path, &setting.value));
            writeln!(f, "{line:<66}  # {}{}", setting.origin, self.note(path))?;
        }
        Ok(())
    }
}

impl fmt::Debug for Explanation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Writes the value as TOML. Possible secrets are redacted, header values as a whole.
fn shown(path: &KeyPath, value: &Value) -> String {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match (names.as_slice(), value) {
        (["providers", _, "headers", _], _) => Value::from(REDACTED).to_string(),
        (["store" | "board", "url"], Value::String(url)) => Value::from(redact_url(url)).to_string(),
        _ => value.to_string(),
    }
}
