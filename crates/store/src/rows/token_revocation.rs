//! Rows of `token_revocations`.

use super::{StoredTime, row};
use crate::error::StoreError;
use crate::token_revocations::TokenRevocation;

row! {
    /// A revocation of the tokens of a subject.
    #[derive(Debug)]
    pub(crate) struct TokenRevocationRow {
        issued_before: StoredTime,
        issuer: String,
        subject: String,
    }
}

impl TryFrom<TokenRevocationRow> for TokenRevocation {
    type Error = StoreError;

    fn try_from(row: TokenRevocationRow) -> Result<Self, StoreError> {
        Ok(Self {
            issuer: row.issuer,
            subject: row.subject,
            issued_before: row.issued_before.0,
        })
    }
}
