//! Why a token is refused.

/// Why a token is refused, in words for the caller. No variant repeats a claim of the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// The text is no signed JWT.
    #[error("the token is malformed: {0}")]
    Malformed(&'static str),
    /// The configuration has no such issuer.
    #[error("the service does not accept tokens of this issuer")]
    UnknownIssuer,
    /// The type of the header is not that of the issuer's access tokens.
    #[error("the token is not of the type that the issuer's access tokens have")]
    Type,
    /// The algorithm is not one of the issuer's.
    #[error("the token's algorithm is not allowed for its issuer")]
    Algorithm,
    /// The issuer has no such key.
    #[error("the issuer has no key with the token's `kid` and algorithm")]
    UnknownKey,
    /// The signature is wrong.
    #[error("the signature of the token is invalid")]
    Signature,
    /// A claim is missing, or has the wrong form.
    #[error("the claim `{0}` is missing or invalid")]
    Claim(String),
    /// The token is for others.
    #[error("the token is not meant for this service: its `aud` is another one")]
    Audience,
    /// The token has expired.
    #[error("the token has expired")]
    Expired,
    /// The token is not valid yet.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// The token is valid for too long.
    #[error("the token is valid for longer than `max_lifetime` allows")]
    Lifetime,
    /// The token was revoked.
    #[error("the tokens of this subject were revoked")]
    Revoked,
    /// The keys of the issuer were never read, or too long ago. The token may be valid.
    #[error("the keys of the token's issuer can't be read now")]
    KeysUnavailable,
}
