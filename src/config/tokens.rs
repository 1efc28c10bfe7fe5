//! `[auth]`: the identity providers whose tokens are accepted.

use url::Url;

use super::error::ConfigError;
use super::limits;
use super::sections::Sections;
use crate::tokens::TokenSettings;

/// Reads the identity providers.
pub(super) fn read(sections: &Sections<'_>) -> Result<TokenSettings, ConfigError> {
    let settings = TokenSettings {
        profiles: limits::profiles(sections)?,
        ..sections.read("auth")?
    };
    let is_origin = |text: &str| Url::parse(text).is_ok_and(|url| url.has_host() && url.path() == "/");
    if settings.resource.as_deref().is_some_and(|text| !is_origin(text)) {
        let problem = "must be an address without a path, such as \"https://agents.example.org\"";
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
