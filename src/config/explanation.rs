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

    /// Says whether the key that a provider's line points at was there.
    fn note(&self, path: &KeyPath) -> &'static str {
        let [section, name, key] = path.as_slice() else {
            return "";
        };
        if section != "providers" || !key.starts_with("api_key_") {
            return "";
        }
        match self.config.providers.get(name) {
            Some(provider) if provider.api_key.is_some() => " (key found)",
            _ => " (no key found)",
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

/// The value as TOML. What may hold a secret is redacted, header values as a whole.
fn shown(path: &KeyPath, value: &Value) -> String {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match (names.as_slice(), value) {
        (["providers", _, "headers", _], _) => Value::from(REDACTED).to_string(),
        (["store" | "board", "url"], Value::String(url)) => Value::from(redact_url(url)).to_string(),
        _ => value.to_string(),
    }
}
