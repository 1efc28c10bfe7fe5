//! Revocations of the tokens of identity providers, in their stored form.

use std::fmt;

use async_trait::async_trait;

use super::audit::Requester;
use super::error::StoreError;
use values::clock::Timestamp;

/// Refuses the tokens of a subject that were issued before a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRevocation {
    /// The identity provider, as its tokens name it.
    pub issuer: String,
    /// The subject.
    pub subject: String,
    /// Tokens that were issued before this time are refused.
    pub issued_before: Timestamp,
}

/// Stores revocations of tokens.
#[async_trait]
pub trait TokenRevocationStore: Send + Sync + fmt::Debug {
    /// Stores a revocation. The later of two for the same subject stays. Removes revocations of
    /// tokens that were issued before `expired`, none of which is valid any more.
    async fn token_revocation_put(
        &self,
        revocation: &TokenRevocation,
        expired: Timestamp,
        by: &Requester,
    ) -> Result<(), StoreError>;

    /// Lists all revocations, by issuer and subject.
    async fn token_revocation_list(&self) -> Result<Vec<TokenRevocation>, StoreError>;
}
