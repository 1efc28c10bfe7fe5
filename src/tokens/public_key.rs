//! A public key of an issuer (RFC 7517), with the algorithms that it verifies.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{RsaPublicKeyComponents, UnparsedPublicKey};

use super::algorithm::{Algorithm, Scheme};
use values::json::Value;

/// The fewest bits of the modulus of an RSA key.
const MIN_RSA_BITS: usize = 2_048;

/// A public key. It decides which algorithms it verifies, not the header of a token.
pub(super) struct PublicKey {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    material: Material,
}

enum Material {
    /// The bytes of a point, or of an Ed25519 key.
    Curve(Vec<u8>),
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
}

impl PublicKey {
    /// Reads a key that verifies one of the algorithms of its issuer. Returns `None` for other
    /// keys, for example those for encryption, and for RSA keys of less than 2048 bits.
    pub(super) fn read(jwk: &Value, allowed: &[Algorithm]) -> Option<Self> {
        let text = |name: &str| jwk.get(name).and_then(Value::as_str);
        let bytes = |name: &str| URL_SAFE_NO_PAD.decode(text(name)?).ok();
        let is_for_signatures = jwk.get("use").is_none_or(|purpose| purpose == "sig");
        let verifies = jwk.get("key_ops").is_none_or(|operations| {
            let mut operations = operations.as_array().into_iter().flatten();
            operations.any(|operation| operation == "verify")
        });
        if !is_for_signatures || !verifies {
            return None;
        }
        let (kind, curve) = (text("kty")?, text("crv"));
        let material = match (kind, curve) {
            ("EC", Some("P-256")) => point(&bytes("x")?, &bytes("y")?, 32)?,
            ("EC", Some("P-384")) => point(&bytes("x")?, &bytes("y")?, 48)?,
            ("OKP", Some("Ed25519")) => Material::Curve(bytes("x").filter(|x| x.len() == 32)?),
            ("RSA", _) => rsa(bytes("n")?, bytes("e")?)?,
            _ => return None,
        };
        let own = match jwk.get("alg") {
            Some(name) => Some(Algorithm::find(name.as_str()?)?),
            None => None,
        };
        let fits = |algorithm: &&Algorithm| {
            let has_kind = match (algorithm.scheme(), &material) {
                (Scheme::Curve { curve: needed, .. }, Material::Curve(_)) => curve == Some(needed),
                (Scheme::Rsa(_), Material::Rsa { .. }) => true,
                _ => false,
            };
            has_kind && own.is_none_or(|own| own == **algorithm)
        };
        let algorithms: Vec<_> = allowed.iter().filter(fits).copied().collect();
        let id = text("kid").map(str::to_owned);
        (!algorithms.is_empty()).then_some(Self {
            id,
            algorithms,
            material,
        })
    }

    /// Returns the `kid`.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns whether the key may verify signatures of the algorithm.
    pub(super) fn verifies(&self, algorithm: Algorithm) -> bool {
        self.algorithms.contains(&algorithm)
    }

    /// Returns whether a signature is valid.
    pub(super) fn is_signed(&self, algorithm: Algorithm, message: &[u8], signature: &[u8]) -> bool {
        let verified = match (&self.material, algorithm.scheme()) {
            (Material::Curve(bytes), Scheme::Curve { verification, .. }) => {
                UnparsedPublicKey::new(verification, bytes).verify(message, signature)
            }
            (Material::Rsa { n, e }, Scheme::Rsa(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            _ => return false,
        };
        self.verifies(algorithm) && verified.is_ok()
    }
}

/// Returns an uncompressed point, whose coordinates have all their bytes.
fn point(x: &[u8], y: &[u8], length: usize) -> Option<Material> {
    let is_whole = x.len() == length && y.len() == length;
    is_whole.then(|| Material::Curve([&[4], x, y].concat()))
}

fn rsa(n: Vec<u8>, e: Vec<u8>) -> Option<Material> {
    let without_zeros = |mut bytes: Vec<u8>| {
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        bytes.drain(..zeros);
        bytes
    };
    let (n, e) = (without_zeros(n), without_zeros(e));
    let bits = n.len() * 8 - n.first()?.leading_zeros() as usize;
    (bits >= MIN_RSA_BITS).then_some(Material::Rsa { n, e })
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PublicKey")
            .field("id", &self.id)
            .field("algorithms", &self.algorithms)
            .finish_non_exhaustive()
    }
}
