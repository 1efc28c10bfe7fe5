//! The keys that an issuer publishes (JWKS, RFC 7517).

use std::sync::Arc;

use super::algorithm::Algorithm;
use super::fetch::FetchError;
use super::public_key::PublicKey;
use values::json::Value;

/// The most keys of an issuer.
const MAX_KEYS: usize = 50;

/// The usable keys of an issuer.
#[derive(Debug)]
pub(super) struct KeySet(Vec<Arc<PublicKey>>);

impl KeySet {
    /// Reads the keys that verify an algorithm of the issuer. A set without any is an error, so
    /// that it does not replace one with keys.
    pub(super) fn read(bytes: &[u8], allowed: &[Algorithm]) -> Result<Self, FetchError> {
        let document: Value = serde_json::from_slice(bytes).map_err(FetchError::Json)?;
        let keys = document.get("keys").and_then(Value::as_array);
        let keys = keys.ok_or(FetchError::Form("it has no list `keys`"))?;
        if keys.len() > MAX_KEYS {
            return Err(FetchError::Form("it has more than 50 keys"));
        }
        let usable = keys.iter().filter_map(|jwk| PublicKey::read(jwk, allowed));
        let usable: Vec<_> = usable.map(Arc::new).collect();
        if usable.is_empty() {
            return Err(FetchError::Form("it has no key for the issuer's `algorithms`"));
        }
        Ok(Self(usable))
    }

    /// Finds the key with an id that verifies an algorithm. A token without an id needs no choice:
    /// one key verifies the algorithm.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&Arc<PublicKey>> {
        let mut fitting = self.0.iter().filter(|key| key.verifies(algorithm));
        let Some(id) = id else {
            let only = fitting.next();
            return only.filter(|_| fitting.next().is_none());
        };
        fitting.find(|key| key.id() == Some(id))
    }

    /// Returns the number of keys.
    pub(super) fn count(&self) -> usize {
        self.0.len()
    }
}
