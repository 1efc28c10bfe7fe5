//! API keys, and the sessions of the console that stand for them: makes secrets and hashes them.
//! Only the hash is stored; the secret is shown once, to its creator.

use secrecy::SecretString;

use values::session::Hash;

/// The prefix of every secret, by which people and scanners recognise it.
pub const PREFIX: &str = "ark_";

/// Bytes of randomness in a secret.
const SECRET_BYTES: usize = 32;
/// The longest text that is hashed. It bounds the work on invalid secrets.
const MAX_LENGTH: usize = 128;

/// Makes the secret of an API key of 256 random bits, and its hash.
pub fn generate() -> Result<(SecretString, Hash), getrandom::Error> {
    let secret = random_text(PREFIX)?;
    let hash = hash_bytes(&secret);
    Ok((SecretString::from(secret), hash))
}

/// Makes the secret of a session of the console, of 256 random bits, and its hash.
pub fn generate_session() -> Result<(SecretString, Hash), getrandom::Error> {
    let secret = random_text("")?;
    let hash = hash_session_bytes(&secret);
    Ok((SecretString::from(secret), hash))
}

/// Makes hexadecimal digits of random bytes, after a prefix.
fn random_text(prefix: &str) -> Result<String, getrandom::Error> {
    let mut bytes = [0; SECRET_BYTES];
    getrandom::fill(&mut bytes)?;
    let digits = bytes.iter();
    Ok(digits.fold(prefix.to_owned(), |text, byte| format!("{text}{byte:02x}")))
}

/// Hashes a secret from a caller; `None` if it can't be a secret.
///
/// A plain hash is enough for 256 random bits, since they can't all be tried. The hash is looked up
/// in an index, never compared byte by byte.
pub fn hash_secret(secret: &str) -> Option<Hash> {
    let plausible = secret.starts_with(PREFIX) && secret.len() <= MAX_LENGTH;
    plausible.then(|| hash_bytes(secret))
}

/// Hashes the secret of a session of the console; `None` if it can't be one.
pub fn hash_session(secret: &str) -> Option<Hash> {
    let plausible = secret.len() == 2 * SECRET_BYTES && secret.bytes().all(|c| c.is_ascii_hexdigit());
    plausible.then(|| hash_session_bytes(secret))
}

fn hash_bytes(secret: &str) -> Hash {
    Hash::from(blake3::derive_key("agent-runtime api key v1", secret.as_bytes()))
}

fn hash_session_bytes(secret: &str) -> Hash {
    let context = "agent-runtime console session v1";
    Hash::from(blake3::derive_key(context, secret.as_bytes()))
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

    #[test]
    fn the_secret_of_a_session_is_no_api_key() {
        let (first, hash) = generate_session().unwrap();
        let (second, _) = generate_session().unwrap();
        let secret = first.expose_secret();
        assert_eq!(hash_session(secret), Some(hash));
        assert_ne!(secret, second.expose_secret());
        assert_eq!(hash_secret(secret), None);
        assert_ne!(Some(hash), hash_secret(&format!("ark_{secret}")));
        let (key, _) = generate().unwrap();
        for wrong in ["", "a", &secret[1..], &"g".repeat(64), key.expose_secret()] {
            assert_eq!(hash_session(wrong), None, "{wrong}");
        }
    }
}
