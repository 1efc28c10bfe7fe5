//! Rows of `spend_periods`.

use super::{RowName, row, written_row};
use crate::error::StoreError;
use crate::spend::SpendNews;
use values::usage::Cost;

row! {
    /// How much of a limit is spent.
    #[derive(Debug)]
    pub(crate) struct SpendRow {
        pub(crate) scope: String,
        pub(crate) period: String,
        /// Microdollars.
        pub(crate) spent: i64,
        pub(crate) reserved: i64,
    }
}

written_row! {
    /// What a run has spent that has reserved spending.
    #[derive(Debug)]
    pub(crate) struct SettlementRow {
        /// Microdollars.
        pub(crate) spent: i64,
    }
}

row! {
    /// A limit of which more is spent than was reported.
    #[derive(Debug)]
    pub(crate) struct SpendNewsRow {
        tenant: String,
        most: i64,
        notified: i16,
        ;
        spend: SpendRow,
    }
}

impl TryFrom<SpendNewsRow> for SpendNews {
    type Error = StoreError;

    fn try_from(row: SpendNewsRow) -> Result<Self, StoreError> {
        let name = RowName::new("spend_periods", &row.spend.scope);
        Ok(Self {
            tenant: name.parse("tenant", &row.tenant)?,
            scope: row.spend.scope,
            period: row.spend.period,
            most: Cost::from_microdollars(row.most),
            spent: Cost::from_microdollars(row.spend.spent),
            notified: row.notified,
        })
    }
}
