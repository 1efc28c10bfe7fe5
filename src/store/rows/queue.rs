//! Rows of `run_queue`: leases, with what their workers need to know.

use std::cmp::Reverse;

use uuid::Uuid;

use super::{RowName, RunSummaryRow, from_row};
use crate::ids::RunId;
use crate::record::RunControl;
use crate::store::codec::{StoredPayload, decode_request};
use crate::store::error::StoreError;
use crate::store::queue::{Lease, LeasedRun, RenewedLease};
use crate::tenant::ParseTenantError;

/// A run that was just leased.
#[derive(Debug)]
pub(crate) struct LeasedRunRow {
    run: RunSummaryRow,
    lease: LeaseRow,
}

#[derive(Debug)]
struct LeaseRow {
    run_id: Uuid,
    lease_tenant: String,
    fence: i64,
    priority: i16,
    turn: i64,
    /// Whether a lease had expired.
    is_expired: bool,
    attempts: i32,
    control: Option<String>,
    moves_thread: bool,
    request_version: i16,
    request_encoding: i16,
    request: Vec<u8>,
}

from_row!(LeaseRow {
    run_id,
    lease_tenant,
    fence,
    priority,
    turn,
    is_expired,
    attempts,
    control,
    moves_thread,
    request_version,
    request_encoding,
    request,
});

impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for LeasedRunRow
where
    RunSummaryRow: sqlx::FromRow<'r, R>,
    LeaseRow: sqlx::FromRow<'r, R>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        Ok(Self {
            run: RunSummaryRow::from_row(row)?,
            lease: LeaseRow::from_row(row)?,
        })
    }
}

impl LeasedRunRow {
    /// Returns its place among those that were leased with it.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        let lease = &self.lease;
        (
            Reverse(lease.is_expired),
            Reverse(lease.priority),
            lease.turn,
            lease.run_id,
        )
    }
}

impl TryFrom<LeasedRunRow> for LeasedRun {
    type Error = StoreError;

    fn try_from(row: LeasedRunRow) -> Result<Self, StoreError> {
        let lease = row.lease;
        let name = RowName::new("run_queue", &lease.run_id);
        let stored = StoredPayload {
            schema_version: lease.request_version,
            encoding: lease.request_encoding,
            bytes: &lease.request,
        };
        Ok(Self {
            request: decode_request(stored).map_err(|error| name.undecodable("request", error))?,
            control: read_control(&name, lease.control)?,
            moves_thread: lease.moves_thread,
            // What was handed back does not count.
            is_taken_over: lease.attempts > 1,
            lease: read_lease(&name, &lease.lease_tenant, lease.run_id, lease.fence)?,
            summary: row.run.try_into()?,
        })
    }
}

/// A lease that was just renewed.
#[derive(Debug)]
pub(crate) struct RenewedLeaseRow {
    tenant: String,
    run_id: Uuid,
    fence: i64,
    control: Option<String>,
    has_messages: bool,
}

from_row!(RenewedLeaseRow {
    tenant,
    run_id,
    fence,
    control,
    has_messages,
});

impl TryFrom<RenewedLeaseRow> for RenewedLease {
    type Error = StoreError;

    fn try_from(row: RenewedLeaseRow) -> Result<Self, StoreError> {
        let name = RowName::new("run_queue", &row.run_id);
        Ok(Self {
            lease: read_lease(&name, &row.tenant, row.run_id, row.fence)?,
            control: read_control(&name, row.control)?,
            has_messages: row.has_messages,
        })
    }
}

fn read_lease(name: &RowName, tenant: &str, run_id: Uuid, fence: i64) -> Result<Lease, StoreError> {
    let tenant = tenant.parse();
    Ok(Lease {
        tenant: tenant.map_err(|error: ParseTenantError| name.corrupt("tenant", error))?,
        run_id: RunId::from_uuid(run_id),
        fence: name.count("fence", fence)?,
    })
}

fn read_control(name: &RowName, control: Option<String>) -> Result<Option<RunControl>, StoreError> {
    let read = |text: String| {
        let known = [RunControl::Stop, RunControl::Cancel].into_iter();
        let mut known = known.filter(|control| control.as_str() == text);
        known
            .next()
            .ok_or_else(|| name.corrupt("control", format!("{text:?} is no control")))
    };
    control.map(read).transpose()
}
