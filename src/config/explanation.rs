//! Shows the settings in force, as `check-config` prints them.

use std::fmt::Write as _;

use toml::Value;

use super::Config;
use super::secrets::{REDACTED, redact_url};
use super::settings::{KeyPath, Settings, dotted};

/// Lists every key in force with its value and its origin, one per line, without secrets.
pub(super) fn explain(settings: &Settings, config: &Config) -> String {
    let mut text = String::new();
    for (path, setting) in settings.iter() {
        if setting.value.is_table() {
            continue;
        }
        let line = format!("{} = {}", dotted(path), shown(path, &setting.value));
        let note = note(config, path).unwrap_or_default();
        // Writing to a string can't fail.
        let _ = writeln!(text, "{line:<66}  # {}{note}", setting.origin);
    }
    text
}

/// Returns whether the secret was found, for a key that names its source.
fn note(config: &Config, path: &KeyPath) -> Option<String> {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    let (secret, noun) = match names.as_slice() {
        ["providers", name, "api_key_env" | "api_key_file"] => (&config.providers.get(*name)?.api_key, "key "),
        ["providers", name, "aws", key] => {
            let aws = &config.providers.get(*name)?.aws;
            match *key {
                "access_key_id_env" => (&aws.access_key_id, ""),
                "secret_access_key_env" => (&aws.secret_access_key, ""),
                "session_token_env" => (&aws.session_token, ""),
                _ => return None,
            }
        }
        ["http", "mcp", "state_key_env" | "state_key_file"] => (&config.http.mcp.state_key, "key "),
        ["tools", "secrets", name, _] => (&config.tools.secrets.get(*name)?.secret, "secret "),
        ["webhooks", "secrets", name, _] => (&config.webhooks.secrets.get(*name)?.secret, "secret "),
        _ => return None,
    };
    Some(match (secret, noun) {
        (Some(_), noun) => format!(" ({noun}found)"),
        (None, "") => " (not found)".to_owned(),
        (None, noun) => format!(" (no {noun}found)"),
    })
}

/// Writes the value as TOML. Possible secrets are redacted, header values as a whole.
fn shown(path: &KeyPath, value: &Value) -> String {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match (names.as_slice(), value) {
        (["providers", _, "headers", _], _) => Value::from(REDACTED).to_string(),
        (["store" | "board", "url"] | ["store", "listen_url"], Value::String(url)) => {
            Value::from(redact_url(url)).to_string()
        }
        _ => value.to_string(),
    }
}
