//! A request to reserve spending, and the decision about it, between the shared statements and an
//! engine.

use uuid::Uuid;

use crate::rows::{SpendRow, StoredTime};
use crate::spend::SpendRequest;
use values::limits::SpendLimit;
use values::tenant::TenantId;

/// The operation's name in errors.
pub(crate) const RESERVE: &str = "reserve spending";

/// A request to reserve with the keys and amounts of the rows, in the order in which they are
/// locked.
#[derive(Debug, Clone)]
pub(crate) struct NewReservation {
    pub(crate) tenant: TenantId,
    pub(crate) run_id: Uuid,
    /// At least one.
    pub(crate) limits: Vec<LimitKey>,
    /// Microdollars.
    pub(crate) least: i64,
    pub(crate) wanted: i64,
    pub(crate) most: i64,
    pub(crate) expires_at: StoredTime,
}

/// The key of a row of `spend_periods`, and its limit.
#[derive(Debug, Clone)]
pub(crate) struct LimitKey {
    pub(crate) scope: String,
    pub(crate) period: String,
    /// Microdollars.
    pub(crate) most: i64,
}

/// The decision about a reservation.
#[derive(Debug)]
pub(crate) enum Decided {
    /// The total of the run, in microdollars.
    Granted(i64),
    /// The row of the limit of which least is left.
    Refused(SpendRow),
    /// A limit has no row yet.
    RowMissing,
}

impl From<&SpendLimit> for LimitKey {
    fn from(limit: &SpendLimit) -> Self {
        Self {
            scope: limit.scope.to_string(),
            period: limit.period_name(),
            most: limit.most.microdollars(),
        }
    }
}

impl From<&SpendRequest> for NewReservation {
    fn from(request: &SpendRequest) -> Self {
        let mut limits: Vec<_> = request.limits.iter().map(LimitKey::from).collect();
        limits.sort_by(|one, other| (&one.scope, &one.period).cmp(&(&other.scope, &other.period)));
        Self {
            tenant: request.tenant.clone(),
            run_id: request.run_id.as_uuid(),
            limits,
            least: request.least.microdollars().max(1),
            wanted: request.wanted.microdollars(),
            most: request.most.microdollars(),
            expires_at: StoredTime(request.expires_at),
        }
    }
}
