//! Finds the issuer of a token, and caches verified tokens for five seconds, so that a busy caller
//! costs no signature check.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use moka::sync::Cache;
use tokio_util::sync::CancellationToken;

use super::fault::TokenFault;
use super::fetch::Fetch;
use super::issuer::Issuer;
use super::principal::Principal;
use super::settings::TokenSettings;
use super::unverified::Unverified;
use store::keys::Scope;
use values::clock::Clock;
use values::json::Value;
use values::session::Hash;

/// How long a verified token is not checked again. A key that its issuer has withdrawn is accepted
/// for that long.
const LIFETIME: Duration = Duration::from_secs(5);
/// The most verified tokens in the cache.
const MAX_VERIFIED: u64 = 10_000;

/// Verifies the tokens of all issuers.
#[derive(Debug)]
pub struct Tokens {
    issuers: Vec<Issuer>,
    resource: Option<String>,
    verified: Cache<Hash, Arc<Principal>>,
}

impl Tokens {
    /// Makes a verifier. No keys are read yet.
    pub fn new(settings: TokenSettings, fetch: &Arc<dyn Fetch>) -> Self {
        let profiles = Arc::new(settings.profiles);
        let issuers = settings
            .issuers
            .into_iter()
            .map(|(name, issuer)| Issuer::new(&name, issuer, &profiles, fetch));
        Self {
            issuers: issuers.collect(),
            resource: settings.resource,
            verified: Cache::builder()
                .max_capacity(MAX_VERIFIED)
                .time_to_live(LIFETIME)
                .build(),
        }
    }

    /// Returns the caller whom a token names.
    pub async fn verify(&self, token: &str, clock: &dyn Clock) -> Result<Arc<Principal>, TokenFault> {
        let hash = Hash::from(blake3::derive_key("agent-runtime token v1", token.as_bytes()));
        if let Some(principal) = self.verified.get(&hash) {
            return if principal.accepted_until > clock.now() {
                Ok(principal)
            } else {
                Err(TokenFault::Expired)
            };
        }
        let unverified = Unverified::read(token)?;
        let named = unverified.claims.get("iss").and_then(Value::as_str);
        let issuer = self.issuers.iter().find(|issuer| named == Some(issuer.id()));
        let issuer = issuer.ok_or(TokenFault::UnknownIssuer)?;
        let principal = Arc::new(issuer.verify(&unverified, clock).await?);
        self.verified.insert(hash, Arc::clone(&principal));
        Ok(principal)
    }

    /// Reads the keys of all issuers whenever that is due, until it is stopped.
    pub async fn refresh(self: Arc<Self>, clock: Arc<dyn Clock>, stop: CancellationToken) {
        let refreshing = self.issuers.iter().map(|issuer| issuer.keys.refresh(&*clock));
        tokio::select! {
            () = stop.cancelled() => (),
            _ = join_all(refreshing) => (),
        }
    }

    /// Returns the ages of the keys of each issuer, by its name in the configuration.
    pub fn key_ages(&self, clock: &dyn Clock) -> impl Iterator<Item = (&str, Duration)> {
        let now = clock.elapsed();
        self.issuers
            .iter()
            .map(move |issuer| (issuer.keys.name(), issuer.keys.age(now)))
    }

    /// Returns the address by which clients name the service.
    pub fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }

    /// Returns whether an issuer makes tokens for an audience.
    pub fn accepts_audience(&self, audience: &str) -> bool {
        let mut accepted = self.issuers.iter().flat_map(Issuer::audience);
        accepted.any(|other| other == audience)
    }

    /// Returns the identifiers of all issuers.
    pub fn issuers(&self) -> impl Iterator<Item = &str> {
        self.issuers.iter().map(Issuer::id)
    }

    /// Returns the names that tokens have for a scope of the service.
    pub fn names_of(&self, scope: Scope) -> Vec<&str> {
        let names = self.issuers.iter().flat_map(|issuer| issuer.names_of(scope));
        let names: BTreeSet<&str> = names.collect();
        names.into_iter().collect()
    }

    /// Returns the names that tokens have for scopes of the service.
    pub fn scope_names(&self) -> BTreeSet<&str> {
        self.issuers.iter().flat_map(Issuer::scope_names).collect()
    }
}
