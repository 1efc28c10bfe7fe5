//! The algorithms of signatures. None of them has a secret that both sides know, so the public keys
//! of an issuer can't sign, and there is no `none`.

use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_2048_8192_SHA384,
    RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256, RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512,
    RsaParameters, VerificationAlgorithm,
};
use serde::Deserialize;
use serde::de::IntoDeserializer as _;
use serde::de::value::{Error as ValueError, StrDeserializer};

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
    /// Finds the algorithm with a name.
    pub(super) fn find(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, ValueError> = name.into_deserializer();
        Self::deserialize(name).ok()
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
    fn the_names_are_those_of_the_standards() {
        for name in [
            "ES256", "ES384", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "EdDSA", "Ed25519",
        ] {
            assert!(Algorithm::find(name).is_some(), "{name}");
        }
        for other in ["none", "None", "HS256", "HS384", "es256", "ES512", "ES256K", ""] {
            assert_eq!(Algorithm::find(other), None, "{other}");
        }
    }
}
