//! An issuer: checks the tokens that name it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::algorithm::Algorithm;
use super::claims::{Claims, Times, missing};
use super::fault::TokenFault;
use super::fetch::Fetch;
use super::key_source::KeySource;
use super::principal::Principal;
use super::settings::IssuerSettings;
use super::unverified::Unverified;
use store::keys::Scope;
use values::clock::Clock;
use values::limits::RunLimits;
use values::tenant::TenantId;

/// An issuer of the configuration, with its keys.
#[derive(Debug)]
pub(super) struct Issuer {
    /// Its `iss`.
    id: Arc<str>,
    settings: IssuerSettings,
    scopes: BTreeMap<String, Scope>,
    profiles: Arc<BTreeMap<String, RunLimits>>,
    pub(super) keys: KeySource,
}

impl Issuer {
    /// Makes an issuer. Its keys are not read yet.
    pub(super) fn new(
        name: &str,
        settings: IssuerSettings,
        profiles: &Arc<BTreeMap<String, RunLimits>>,
        fetch: &Arc<dyn Fetch>,
    ) -> Self {
        Self {
            id: Arc::from(settings.issuer.as_str()),
            scopes: settings.scope_names(),
            profiles: Arc::clone(profiles),
            keys: KeySource::new(name, &settings, Arc::clone(fetch)),
            settings,
        }
    }

    /// Returns its `iss`.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the names that its tokens have for scopes of the service.
    pub(super) fn scope_names(&self) -> impl Iterator<Item = &str> {
        self.scopes.keys().map(String::as_str)
    }

    /// Returns the names that its tokens have for a scope of the service.
    pub(super) fn names_of(&self, scope: Scope) -> impl Iterator<Item = &str> {
        let names = self.scopes.iter().filter(move |(_, other)| **other == scope);
        names.map(|(name, _)| name.as_str())
    }

    /// Returns the accepted values of `aud`.
    pub(super) fn audience(&self) -> &[String] {
        &self.settings.audience
    }

    /// Checks a token that names this issuer.
    pub(super) async fn verify(&self, token: &Unverified<'_>, clock: &dyn Clock) -> Result<Principal, TokenFault> {
        let header = &token.header;
        if !header.has_type(&self.settings.typ) {
            return Err(TokenFault::Type);
        }
        let algorithm = Algorithm::find(&header.alg).filter(|found| self.settings.algorithms.contains(found));
        let algorithm = algorithm.ok_or(TokenFault::Algorithm)?;
        let key = self.keys.find(header.kid.as_deref(), algorithm, clock).await?;
        if !key.is_signed(algorithm, token.message, &token.signature) {
            return Err(TokenFault::Signature);
        }
        self.principal(Claims(&token.claims), clock)
    }

    /// Returns the caller whom the claims of a signed token name.
    fn principal(&self, claims: Claims<'_>, clock: &dyn Clock) -> Result<Principal, TokenFault> {
        let IssuerSettings {
            audience,
            required,
            leeway,
            max_lifetime,
            scope_claim,
            ..
        } = &self.settings;
        claims.check_audience(audience)?;
        let Times { issued_at, expires_at } = claims.check_times(clock.now(), *leeway, *max_lifetime)?;
        for (pointer, wanted) in required {
            if claims.text(pointer)? != wanted {
                return Err(missing(pointer));
            }
        }
        let subject = claims.name("/sub")?.ok_or_else(|| missing("/sub"))?;
        let client = match claims.name("/azp")? {
            Some(client) => Some(client),
            None => claims.name("/client_id")?,
        };
        let names = claims.texts(scope_claim);
        let granted = self.scopes.iter().filter(|(name, _)| names.contains(&name.as_str()));
        Ok(Principal {
            issuer: Arc::clone(&self.id),
            subject,
            client,
            actor: claims.actor()?,
            tenant: self.tenant(claims)?,
            scopes: granted.map(|(_, scope)| *scope).collect(),
            limits: self.limits(claims)?,
            issued_at,
            expires_at,
            accepted_until: expires_at + *leeway,
        })
    }

    fn tenant(&self, claims: Claims<'_>) -> Result<TenantId, TokenFault> {
        let IssuerSettings {
            tenant,
            tenant_claim,
            tenants,
            ..
        } = &self.settings;
        let Some(pointer) = tenant_claim else {
            return tenant.clone().ok_or_else(|| missing("/tenant"));
        };
        let name = claims.text(pointer)?;
        let is_allowed = tenants.is_empty() || tenants.iter().any(|pattern| pattern.matches(name));
        let tenant = name.parse().ok().filter(|_| is_allowed);
        tenant.ok_or_else(|| missing(pointer))
    }

    /// Returns the limits of the profile that a token names. A token can't leave it out.
    fn limits(&self, claims: Claims<'_>) -> Result<RunLimits, TokenFault> {
        let Some(pointer) = &self.settings.limits_claim else {
            return Ok(RunLimits::default());
        };
        let profile = self.profiles.get(claims.text(pointer)?);
        profile.cloned().ok_or_else(|| missing(pointer))
    }
}
