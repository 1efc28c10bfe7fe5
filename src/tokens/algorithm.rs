//! The algorithms of signatures. None of them has a secret that both sides know, so the public keys
//! of an issuer can't sign, and there is no `none`.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, VerificationAlgorithm,
};
use serde::Deserialize;

/// An algorithm by its name in RFC 7518, RFC 8037 and RFC 9864.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Algorithm {
    Es256,
    Es384,
    Rs256,
    Rs384,
    Rs512,
    Ps256,
    Ps384,
    Ps512,
    #[serde(rename = "EdDSA")]
    EdDsa,
    #[serde(rename = "Ed25519")]
    Ed25519,
}

/// The kind of key that an algorithm needs.
#[derive(Clone, Copy)]
pub(super) enum Scheme {
    /// The bytes of a point, or of an Ed25519 key.
    Curve {
        /// The `crv` of the key.
        curve: &'static str,
        verification: &'static dyn VerificationAlgorithm,
    },
    Rsa(&'static RsaParameters),
}

impl Algorithm {
    const ALL: [Self; 10] = [
        Self::Es256,
        Self::Es384,
        Self::Rs256,
        Self::Rs384,
        Self::Rs512,
        Self::Ps256,
        Self::Ps384,
        Self::Ps512,
        Self::EdDsa,
        Self::Ed25519,
    ];

    /// Finds the algorithm with a name.
    pub(super) fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|algorithm| algorithm.as_str() == name)
    }

    /// Returns the name.
    fn as_str(self) -> &'static str {
        match self {
            Self::Es256 => "ES256",
            Self::Es384 => "ES384",
            Self::Rs256 => "RS256",
            Self::Rs384 => "RS384",
            Self::Rs512 => "RS512",
            Self::Ps256 => "PS256",
            Self::Ps384 => "PS384",
            Self::Ps512 => "PS512",
            Self::EdDsa => "EdDSA",
            Self::Ed25519 => "Ed25519",
        }
    }

    /// Returns the kind of key, and how it verifies. RSA keys have at least 2048 bits.
    pub(super) fn scheme(self) -> Scheme {
        match self {
            Self::Es256 => Scheme::Curve {
                curve: "P-256",
                verification: &ECDSA_P256_SHA256_FIXED,
            },
            Self::Es384 => Scheme::Curve {
                curve: "P-384",
                verification: &ECDSA_P384_SHA384_FIXED,
            },
            Self::EdDsa | Self::Ed25519 => Scheme::Curve {
                curve: "Ed25519",
                verification: &ED25519,
            },
            Self::Rs256 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA256),
            Self::Rs384 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA384),
            Self::Rs512 => Scheme::Rsa(&RSA_PKCS1_2048_8192_SHA512),
            Self::Ps256 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA256),
            Self::Ps384 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA384),
            Self::Ps512 => Scheme::Rsa(&RSA_PSS_2048_8192_SHA512),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_configuration_has_the_names_of_the_standards() {
        for algorithm in Algorithm::ALL {
            let name = serde_json::Value::from(algorithm.as_str());
            assert_eq!(serde_json::from_value::<Algorithm>(name).unwrap(), algorithm);
            assert_eq!(Algorithm::find(algorithm.as_str()), Some(algorithm));
        }
        for other in ["none", "None", "HS256", "HS384", "es256", "ES512", "ES256K", ""] {
            assert_eq!(Algorithm::find(other), None, "{other}");
            assert!(serde_json::from_value::<Algorithm>(other.into()).is_err(), "{other}");
        }
    }
}
