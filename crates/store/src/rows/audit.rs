//! Rows of `audit_heads` and `audit_entries`.

use super::{RowName, row};
use crate::audit::{AuditChain, AuditHead, AuditRecord};
use crate::error::StoreError;
use values::session::Hash;

row! {
    /// The name of a chain.
    #[derive(Debug)]
    pub(crate) struct AuditChainRow {
        chain: String,
    }
}

row! {
    /// The end of a chain.
    #[derive(Debug)]
    pub(crate) struct AuditHeadRow {
        chain: String,
        number: i64,
        hash: Vec<u8>,
    }
}

row! {
    /// An entry.
    #[derive(Debug)]
    pub(crate) struct AuditEntryRow {
        number: i64,
        entry: String,
        previous_hash: Vec<u8>,
        hash: Vec<u8>,
    }
}

impl TryFrom<AuditChainRow> for AuditChain {
    type Error = StoreError;

    fn try_from(row: AuditChainRow) -> Result<Self, StoreError> {
        RowName::new("audit_entries", &row.chain).parse("chain", &row.chain)
    }
}

impl TryFrom<AuditHeadRow> for AuditHead {
    type Error = StoreError;

    fn try_from(row: AuditHeadRow) -> Result<Self, StoreError> {
        let name = RowName::new("audit_heads", &row.chain);
        Ok(Self {
            chain: name.parse("chain", &row.chain)?,
            number: name.count("number", row.number)?,
            hash: name.hash("hash", &row.hash)?,
        })
    }
}

impl TryFrom<AuditEntryRow> for AuditRecord {
    type Error = StoreError;

    fn try_from(row: AuditEntryRow) -> Result<Self, StoreError> {
        let name = RowName::new("audit_entries", &row.number);
        // The check of the chain finds what is damaged.
        let hash = |bytes: &[u8]| Hash::try_from(bytes).unwrap_or(Hash::from([0; 32]));
        Ok(Self {
            number: name.count("number", row.number)?,
            previous_hash: hash(&row.previous_hash),
            hash: hash(&row.hash),
            entry: row.entry,
        })
    }
}
