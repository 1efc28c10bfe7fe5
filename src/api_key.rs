//! API keys: makes secrets and hashes them. Only the hash is stored; the secret is shown once, to
//! its creator.

use secrecy::SecretString;

use values::session::Hash;

/// The prefix of every secret, by which people and scanners recognise it.
pub const PREFIX: &str = "ark_";

/// Bytes of randomness in a secret.
const SECRET_BYTES: usize = 32;
/// The longest text that is hashed. It bounds the work on invalid secrets.
const MAX_LENGTH: usize = 128;

/// Makes a secret of 256 random bits, and its hash.
pub fn generate() -> Result<(SecretString, Hash), getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    let secret = bytes
        .iter()
        .fold(PREFIX.to_owned(), |text, byte| format!("{text}{byte:02x}"));
    let hash = hash_bytes(&secret);
    Ok((SecretString::from(secret), hash))
}

/// Hashes a secret from a caller; `None` if it can't be a secret.
///
/// A plain hash is enough for 256 random bits, since they can't all be tried. The hash is looked up
/// in an index, never compared byte by byte.
pub fn hash_secret(secret: &str) -> Option<Hash> {
    let plausible = secret.starts_with(PREFIX) && secret.len() <= MAX_LENGTH;
    plausible.then(|| hash_bytes(secret))
}

fn hash_bytes(secret: &str) -> Hash {
    Hash::from(blake3::derive_key("agent-runtime api key v1", secret.as_bytes()))
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    #[test]
    fn a_secret_is_found_by_its_hash_and_never_made_twice() {
        let (first, hash) = generate().unwrap();
        let (second, other) = generate().unwrap();
        assert_eq!(first.expose_secret().len(), PREFIX.len() + 64);
        assert_eq!(hash_secret(first.expose_secret()), Some(hash));
        assert_ne!(first.expose_secret(), second.expose_secret());
        assert_ne!(hash, other);
        assert_eq!(hash_secret("sk-1"), None);
        assert_eq!(hash_secret(&format!("ark_{}", "a".repeat(1000))), None);
    }
}
