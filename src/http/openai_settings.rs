//! The settings of the routes for OpenAI's clients, and the key that seals encrypted reasoning.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use serde::Deserialize;

use values::tenant::TenantId;

/// The fewest bytes of a key.
const MIN_KEY_BYTES: usize = 32;

/// The length of a salt in bytes: those of different texts never meet.
const SALT_LEN: usize = blake3::OUT_LEN;

/// How the service treats tools on these routes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub struct OpenAiAccess {
    /// The tools of a request that the service does not have.
    pub unsupported_tools: UnsupportedTools,
    /// The calls of the agent's own tools.
    pub own_tools: OwnTools,
}

/// The treatment of a tool of another type than `function` in a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnsupportedTools {
    /// The request is refused.
    #[default]
    Refuse,
    /// The model does not get the tool.
    Drop,
}

/// The treatment of calls of the agent's own tools in a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OwnTools {
    /// They are items of the type `mcp_call`.
    #[default]
    Show,
    /// The response does not have them.
    Hide,
}

/// The settings of the routes for OpenAI's clients.
#[derive(Debug, Default)]
pub struct OpenAiSettings {
    /// How the service treats tools.
    pub access: OpenAiAccess,
    /// Seals encrypted reasoning; without it, responses have none.
    pub seal: Option<Seal>,
}

/// Encrypts data that a client stores and sends back, for one tenant.
///
/// A text that is sealed again is the same to the byte, so a response can be read again. Each text
/// has a key of its own, made from a salt, and the salt is a keyed hash of the tenant and the text
/// (a synthetic initialization vector, as in RFC 5297). So no key encrypts two texts, and a sealed
/// text shows nothing but whether it equals another one of the tenant.
#[derive(Debug)]
pub struct Seal {
    salts: Secret,
    keys: Secret,
}

/// A key, which is never shown.
struct Secret([u8; blake3::KEY_LEN]);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The reason why a key can't seal.
#[derive(Debug, thiserror::Error)]
pub enum SealKeyError {
    /// The key is too short.
    #[error("the key has {0} bytes, and at least {MIN_KEY_BYTES} are needed")]
    TooShort(usize),
    /// There is no randomness for a key.
    #[error("no random key can be made: {0}")]
    NoRandomness(getrandom::Error),
}

impl Seal {
    /// Makes a seal with a key that all replicas share.
    pub fn new(key: &[u8]) -> Result<Self, SealKeyError> {
        if key.len() < MIN_KEY_BYTES {
            return Err(SealKeyError::TooShort(key.len()));
        }
        Ok(Self {
            salts: Secret(blake3::derive_key("agent-runtime encrypted reasoning v1: salts", key)),
            keys: Secret(blake3::derive_key("agent-runtime encrypted reasoning v1: keys", key)),
        })
    }

    /// Makes a seal with a random key of this process.
    pub fn random() -> Result<Self, SealKeyError> {
        let mut random = [0; MIN_KEY_BYTES];
        getrandom::fill(&mut random).map_err(SealKeyError::NoRandomness)?;
        Self::new(&random)
    }

    /// Encrypts bytes for a tenant. `None` if they are too long for the cipher.
    pub(super) fn seal(&self, tenant: &TenantId, plain: &[u8]) -> Option<String> {
        let salt = hash(&self.salts, tenant, plain);
        let mut sealed = plain.to_vec();
        let key = self.key(tenant, &salt)?;
        key.seal_in_place_append_tag(only_nonce(), Aad::empty(), &mut sealed)
            .ok()?;
        sealed.extend_from_slice(&salt);
        Some(URL_SAFE_NO_PAD.encode(sealed))
    }

    /// Decrypts a text that a seal with the same key has encrypted for the tenant; `None` for
    /// anything else.
    pub(super) fn open(&self, tenant: &TenantId, sealed: &str) -> Option<Vec<u8>> {
        let mut sealed = URL_SAFE_NO_PAD.decode(sealed).ok()?;
        let salt = sealed.split_off(sealed.len().checked_sub(SALT_LEN)?);
        let key = self.key(tenant, &salt)?;
        let length = key.open_in_place(only_nonce(), Aad::empty(), &mut sealed).ok()?.len();
        sealed.truncate(length);
        Some(sealed)
    }

    /// Makes the key of one text.
    fn key(&self, tenant: &TenantId, salt: &[u8]) -> Option<LessSafeKey> {
        let key = UnboundKey::new(&CHACHA20_POLY1305, &hash(&self.keys, tenant, salt));
        key.ok().map(LessSafeKey::new)
    }
}

/// Hashes bytes for a tenant. The name of a tenant has no zero byte, so no two pairs are alike.
fn hash(key: &Secret, tenant: &TenantId, bytes: &[u8]) -> [u8; blake3::OUT_LEN] {
    let mut hasher = blake3::Hasher::new_keyed(&key.0);
    hasher.update(tenant.as_str().as_bytes()).update(&[0]).update(bytes);
    *hasher.finalize().as_bytes()
}

/// Returns the nonce of a key that encrypts one text only.
fn only_nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_same_key_and_tenant_open_what_is_sealed() {
        let (key, other) = ([7; MIN_KEY_BYTES], [8; MIN_KEY_BYTES]);
        let seal = Seal::new(&key).unwrap();
        let (acme, globex) = ("acme".parse().unwrap(), "globex".parse().unwrap());
        let sealed = seal.seal(&acme, b"thoughts").unwrap();
        let others = [
            seal.seal(&acme, b"thought").unwrap(),
            seal.seal(&globex, b"thoughts").unwrap(),
        ];
        assert!(others.iter().all(|other| *other != sealed));
        let replica = Seal::new(&key).unwrap();
        assert_eq!(replica.seal(&acme, b"thoughts").unwrap(), sealed);
        assert_eq!(replica.open(&acme, &sealed).unwrap(), b"thoughts");
        assert_eq!(seal.open(&globex, &sealed), None);
        assert_eq!(Seal::new(&other).unwrap().open(&acme, &sealed), None);
        for changed in ["", "x", "AAAA", &sealed[1..], &format!("{sealed}A"), &"A".repeat(100)] {
            assert_eq!(seal.open(&acme, changed), None, "{changed}");
        }
        assert!(matches!(Seal::new(&key[1..]), Err(SealKeyError::TooShort(31))));
    }
}
