//! `[auth]`: the identity providers whose tokens are accepted.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;

use super::algorithm::Algorithm;
use super::fetch::is_secure;
use store::keys::Scope;
use values::limits::{Pattern, RunLimits};
use values::settings::{duration, filled};
use values::tenant::TenantId;

/// The longest `max_lifetime`. A revocation is of no use for longer.
pub const MAX_LIFETIME: Duration = Duration::from_hours(30 * 24);

/// The identity providers, and what they refer to.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct TokenSettings {
    /// The address of the service, by which clients name it (RFC 9728); `None` publishes nothing.
    #[serde(default)]
    pub resource: Option<String>,
    /// The issuers by the names of the configuration.
    #[serde(default)]
    pub issuers: BTreeMap<String, IssuerSettings>,
    /// The limits that a token can name, from `[limits.profiles]`.
    #[serde(skip)]
    pub profiles: BTreeMap<String, RunLimits>,
}

/// An issuer, and what its tokens must have.
#[derive(Debug, Clone, Deserialize)]
pub struct IssuerSettings {
    /// The `iss` of its tokens, compared character by character.
    #[serde(deserialize_with = "filled")]
    pub issuer: String,
    /// The accepted values of `aud`.
    pub audience: Vec<String>,
    /// The accepted algorithms.
    #[serde(default = "default_algorithms")]
    pub algorithms: Vec<Algorithm>,
    /// Where its keys are; `None` reads the address from its discovery document.
    #[serde(default)]
    pub jwks_uri: Option<String>,
    /// The `typ` of its access tokens, which ID tokens do not have.
    #[serde(default = "default_typ", deserialize_with = "filled")]
    pub typ: String,
    /// The JSON pointer to the tenant in the claims.
    #[serde(default)]
    pub tenant_claim: Option<String>,
    /// The tenant of all its tokens.
    #[serde(default)]
    pub tenant: Option<TenantId>,
    /// The tenants that its tokens may name; empty allows all.
    #[serde(default)]
    pub tenants: Vec<Pattern>,
    /// The JSON pointer to the scopes in the claims.
    #[serde(default = "default_scope_claim", deserialize_with = "filled")]
    pub scope_claim: String,
    /// The scopes of the service by the names that its tokens have for them.
    #[serde(default)]
    pub scopes: BTreeMap<String, Scope>,
    /// The JSON pointer to the name of a profile of limits in the claims.
    #[serde(default)]
    pub limits_claim: Option<String>,
    /// Texts that claims must have, by their JSON pointers.
    #[serde(default)]
    pub required: BTreeMap<String, String>,
    /// How far the clocks of the issuer and of the service may differ.
    #[serde(default = "default_leeway", deserialize_with = "duration::<0, 300_000, _>")]
    pub leeway: Duration,
    /// The longest life of a token.
    #[serde(
        default = "default_max_lifetime",
        deserialize_with = "duration::<60_000, 2_592_000_000, _>"
    )]
    pub max_lifetime: Duration,
}

/// A setting that can't be used: its key, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IssuerFault {
    pub key: &'static str,
    pub problem: &'static str,
}

impl IssuerSettings {
    /// Finds a setting that can't be used.
    pub fn check(&self, has_profiles: bool) -> Result<(), IssuerFault> {
        let pointer = "is no JSON pointer such as \"/tenant\"";
        let is_pointer = |text: &String| text.starts_with('/');
        let faults = [
            (!is_secure(&self.issuer), "issuer", "must be an https address"),
            (
                self.jwks_uri.as_ref().is_some_and(|uri| !is_secure(uri)),
                "jwks_uri",
                "must be an https address",
            ),
            (
                self.audience.is_empty() || self.audience.iter().any(String::is_empty),
                "audience",
                "names no audience",
            ),
            (self.algorithms.is_empty(), "algorithms", "names no algorithm"),
            (
                self.tenant.is_some() == self.tenant_claim.is_some(),
                "tenant",
                "either `tenant` or `tenant_claim` is needed",
            ),
            (
                self.limits_claim.is_some() && !has_profiles,
                "limits_claim",
                "names limits, and `limits.profiles` has none",
            ),
            (
                !self.scopes.keys().all(|name| is_scope(name)),
                "scopes",
                "has a name that no token can have",
            ),
            (!is_pointer(&self.scope_claim), "scope_claim", pointer),
            (!self.tenant_claim.iter().all(is_pointer), "tenant_claim", pointer),
            (!self.limits_claim.iter().all(is_pointer), "limits_claim", pointer),
            (!self.required.keys().all(is_pointer), "required", pointer),
        ];
        let fault = faults.into_iter().find(|(is_wrong, ..)| *is_wrong);
        fault.map_or(Ok(()), |(_, key, problem)| Err(IssuerFault { key, problem }))
    }

    /// Returns the names of scopes in tokens with the scopes of the service. By default these are
    /// the same, without those that administer.
    pub(super) fn scope_names(&self) -> BTreeMap<String, Scope> {
        if self.scopes.is_empty() {
            let own = [Scope::RunsWrite, Scope::SessionsRead];
            own.map(|scope| (scope.as_str().to_owned(), scope)).into()
        } else {
            self.scopes.clone()
        }
    }
}

/// Returns whether a text can be the name of a scope (RFC 6749, section 3.3).
fn is_scope(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !br#""\"#.contains(&byte))
}

fn default_algorithms() -> Vec<Algorithm> {
    vec![Algorithm::Es256]
}

fn default_typ() -> String {
    "at+jwt".to_owned()
}

fn default_scope_claim() -> String {
    "/scope".to_owned()
}

fn default_leeway() -> Duration {
    Duration::from_secs(30)
}

fn default_max_lifetime() -> Duration {
    Duration::from_hours(24)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn settings_that_accept_too_much_are_refused() {
        let read = |key: &str, value: Value| {
            let mut settings = json!({"issuer": "https://i.example", "audience": ["a"], "tenant_claim": "/tenant"});
            settings[key] = value;
            serde_json::from_value::<IssuerSettings>(settings)
        };
        for (key, value) in [
            ("issuer", json!("http://i.example")),
            ("audience", json!([])),
            ("audience", json!(["a", ""])),
            ("algorithms", json!([])),
            ("jwks_uri", json!("http://i.example/jwks")),
            ("tenant_claim", json!("tenant")),
            ("scope_claim", json!("scope")),
            ("limits_claim", json!("/plan")),
            ("required", json!({"azp": "gateway"})),
            ("tenant", json!("acme")),
            ("scopes", json!({"agents run": "runs:write"})),
            ("scopes", json!({"a\"": "runs:write"})),
        ] {
            let fault = read(key, value).unwrap().check(false).unwrap_err();
            assert_eq!(fault.key, key);
        }
        for (key, value) in [
            ("algorithms", json!(["HS256"])),
            ("algorithms", json!(["none"])),
            ("tenant", json!("No tenant")),
            ("leeway", json!("1h")),
            ("max_lifetime", json!("31days")),
            ("scopes", json!({"x": "runs:read"})),
        ] {
            assert!(read(key, value.clone()).is_err(), "{key} {value}");
        }
        read("limits_claim", json!("/plan")).unwrap().check(true).unwrap();
        let own = read("leeway", json!("0s")).unwrap();
        assert_eq!(own.check(false), Ok(()));
        assert_eq!(
            own.scope_names().into_keys().collect::<Vec<_>>(),
            ["runs:write", "sessions:read"]
        );
    }
}
