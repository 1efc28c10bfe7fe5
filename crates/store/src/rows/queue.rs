//! Rows of `run_queue`.

use std::cmp::Reverse;
use std::error::Error as StdError;

use uuid::Uuid;

use super::{RowName, RunRow, StoredTime, row, stored_count, written_row};
use crate::codec::Payload;
use crate::error::StoreError;
use crate::queue::{Lease, LeasedRun, RenewedLease, StoredRequest};
use agent::record::RunControl;
use values::ids::RunId;

/// A run that was just leased.
#[derive(Debug)]
pub(crate) struct LeasedRunRow {
    key: LeaseKeyRow,
    /// The other columns. An error here affects only this run, not the rest of the batch.
    rest: Result<(LeaseRow, RunRow), sqlx::Error>,
}

row! {
    /// The columns of a lease that are needed even if the rest of the row can't be read.
    #[derive(Debug)]
    struct LeaseKeyRow {
        lease_tenant: String,
        lease_run_id: Uuid,
        fence: i64,
        lease_attempts: i64,
        level: i64,
        turn: i64,
        /// Whether the run had an expired lease.
        is_expired: bool,
    }
}

written_row! {
    /// The row of a new run. The statement that inserts it determines its turn.
    #[derive(Debug)]
    pub(crate) struct QueueRow {
        pub(crate) run_id: Uuid,
        pub(crate) thread: Option<String>,
        pub(crate) moves_thread: bool,
        /// Whether it begins at the session to which its thread points then.
        pub(crate) follows_thread: bool,
        /// Whether it waits for the active run of its thread.
        pub(crate) is_held: bool,
        pub(crate) priority: i16,
        pub(crate) level: i16,
        pub(crate) enqueued_at: StoredTime,
        /// The fence token of its first lease; 0 if it is not leased at once.
        pub(crate) fence: i64,
        pub(crate) attempts: i32,
        pub(crate) leased_until: Option<StoredTime>,
        pub(crate) owner: Option<String>,
        pub(crate) schema_version: i16,
        pub(crate) encoding: i16,
        pub(crate) request: Vec<u8>,
    }
}

row! {
    #[derive(Debug)]
    struct LeaseRow {
        control: Option<String>,
        moves_thread: bool,
        request_version: i16,
        request_encoding: i16,
        request: Vec<u8>,
    }
}

impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for LeasedRunRow
where
    LeaseKeyRow: sqlx::FromRow<'r, R>,
    LeaseRow: sqlx::FromRow<'r, R>,
    RunRow: sqlx::FromRow<'r, R>,
{
    fn from_row(row: &'r R) -> Result<Self, sqlx::Error> {
        let lease = LeaseRow::from_row(row);
        Ok(Self {
            key: LeaseKeyRow::from_row(row)?,
            rest: lease.and_then(|lease| Ok((lease, RunRow::from_row(row)?))),
        })
    }
}

/// The key of a lease, as stored.
#[derive(Debug, Clone)]
pub(crate) struct LeaseKey {
    pub(crate) tenant: String,
    pub(crate) run_id: Uuid,
    pub(crate) fence: i64,
}

impl From<&Lease> for LeaseKey {
    fn from(lease: &Lease) -> Self {
        Self {
            tenant: lease.tenant.as_str().to_owned(),
            run_id: lease.run_id.as_uuid(),
            fence: stored_count(lease.fence),
        }
    }
}

/// A leased run whose rows can't be read.
#[derive(Debug)]
pub(crate) struct UnreadableRun {
    pub(crate) key: LeaseKey,
    /// The number of its leases, including this one.
    pub(crate) attempts: i64,
    pub(crate) error: StoreError,
}

impl LeasedRunRow {
    /// Returns a sort key for the runs of a batch.
    pub(crate) fn order(&self) -> impl Ord + use<> {
        let key = &self.key;
        (Reverse(key.is_expired), Reverse(key.level), key.turn, key.lease_run_id)
    }

    /// Reads the run.
    pub(crate) fn read(self) -> Result<LeasedRun, Box<UnreadableRun>> {
        let Self { key, rest } = self;
        read_run(&key, rest).map_err(|error| {
            Box::new(UnreadableRun {
                attempts: key.lease_attempts,
                key: LeaseKey {
                    tenant: key.lease_tenant,
                    run_id: key.lease_run_id,
                    fence: key.fence,
                },
                error,
            })
        })
    }
}

fn read_run(key: &LeaseKeyRow, rest: Result<(LeaseRow, RunRow), sqlx::Error>) -> Result<LeasedRun, StoreError> {
    let name = RowName::new("run_queue", &key.lease_run_id);
    let lease = read_lease(&name, &key.lease_tenant, key.lease_run_id, key.fence)?;
    let (row, run) = rest.map_err(|error| name.corrupt("run_id", error))?;
    Ok(LeasedRun {
        lease,
        summary: run.try_into()?,
        request: StoredRequest::from_row(Payload {
            schema_version: row.request_version,
            encoding: row.request_encoding,
            bytes: row.request,
        }),
        control: read_control(&name, row.control),
        moves_thread: row.moves_thread,
        // Released attempts do not count.
        is_taken_over: key.lease_attempts > 1,
    })
}

row! {
    /// A lease that was to be renewed and is in force.
    #[derive(Debug)]
    pub(crate) struct RenewedLeaseRow {
        tenant: String,
        run_id: Uuid,
        fence: i64,
        control: Option<String>,
        has_messages: bool,
        is_prolonged: bool,
    }
}

impl TryFrom<RenewedLeaseRow> for RenewedLease {
    type Error = StoreError;

    fn try_from(row: RenewedLeaseRow) -> Result<Self, StoreError> {
        let name = RowName::new("run_queue", &row.run_id);
        Ok(Self {
            lease: read_lease(&name, &row.tenant, row.run_id, row.fence)?,
            control: read_control(&name, row.control),
            has_messages: row.has_messages,
            is_prolonged: row.is_prolonged,
        })
    }
}

fn read_lease(name: &RowName, tenant: &str, run_id: Uuid, fence: i64) -> Result<Lease, StoreError> {
    Ok(Lease {
        tenant: name.parse("tenant", tenant)?,
        run_id: RunId::from_uuid(run_id),
        fence: name.count("fence", fence)?,
    })
}

/// Reads the control. An unknown one is logged and ignored, so that leases are renewed and the run
/// continues.
fn read_control(name: &RowName, control: Option<String>) -> Option<RunControl> {
    let read = name.named("control", &control?);
    read.inspect_err(|error| {
        tracing::error!(error = error as &dyn StdError, "the control of a run can't be read");
    })
    .ok()
}
