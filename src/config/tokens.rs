//! `[auth]`: the identity providers whose tokens are accepted.

use url::Url;

use super::error::ConfigError;
use super::limits;
use super::sections::Sections;
use crate::tokens::{TokenSettings, is_secure};

/// Reads the identity providers.
pub(super) fn read(sections: &Sections<'_>) -> Result<TokenSettings, ConfigError> {
    let settings = TokenSettings {
        profiles: limits::profiles(sections)?,
        ..sections.read("auth")?
    };
    let is_origin = |text: &str| {
        let origin = Url::parse(text).map(|url| url.origin().ascii_serialization());
        is_secure(text) && origin.is_ok_and(|origin| origin == text.strip_suffix('/').unwrap_or(text))
    };
    if settings.resource.as_deref().is_some_and(|text| !is_origin(text)) {
        let problem = "must be an https address without a path, such as \"https://agents.example.org\"";
        return Err(sections.invalid(&["auth", "resource"], problem));
    }
    let mut seen: Vec<&str> = Vec::new();
    for (name, issuer) in &settings.issuers {
        let invalid = |key: &str, problem: &str| sections.invalid(&["auth", "issuers", name, key], problem);
        let checked = issuer.check(!settings.profiles.is_empty());
        checked.map_err(|fault| invalid(fault.key, fault.problem))?;
        if seen.contains(&issuer.issuer.as_str()) {
            return Err(invalid("issuer", "another table has the same issuer"));
        }
        seen.push(&issuer.issuer);
    }
    Ok(settings)
}
