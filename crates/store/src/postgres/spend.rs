//! Reserves spending on PostgreSQL with one statement, so that the rows of limits, which many runs
//! share, are locked for no longer than it takes.

use super::PostgresStore;
use crate::error::StoreError;
use crate::rows::{SpendRow, row, values};
use crate::sql::{Decided, NewReservation, RESERVE, Statement};

row! {
    /// The decision, and the limit of which least is left. Without such a limit, none has a row.
    #[derive(Debug)]
    struct DecisionRow {
        is_complete: bool,
        total: Option<i64>,
        is_granted: Option<bool>,
        scope: Option<String>,
        period: Option<String>,
        spent: Option<i64>,
        reserved: Option<i64>,
    }
}

/// Decides about a reservation, and makes it.
///
/// A subquery locks each row by its key, so that it reads what is spent and reserved after it has
/// waited for other transactions. It must find all rows: one that another transaction has inserted
/// since the statement began is not seen, and would count as no limit.
pub(super) async fn spend_take(store: &PostgresStore, reservation: &NewReservation) -> Result<Decided, StoreError> {
    let NewReservation { tenant, run_id, .. } = reservation;
    let values = values![
        tenant,
        *run_id,
        reservation.least,
        reservation.wanted,
        reservation.most,
        reservation.expires_at
    ];
    let mut take = Statement::with(RESERVE, "with asked (scope, period, most) as (values ", values);
    for (index, limit) in reservation.limits.iter().enumerate() {
        take.push_bind(if index == 0 { "(" } else { "), (" }, &limit.scope);
        take.push_bind("::text, ", &limit.period);
        take.push_bind("::text, ", limit.most);
        take.push("::bigint");
    }
    take.push(DECIDE);
    let rows: Vec<DecisionRow> = take.execute_returning(store).await?;
    Ok(rows
        .into_iter()
        .next()
        .map_or(Decided::RowMissing, DecisionRow::decided))
}

impl DecisionRow {
    fn decided(self) -> Decided {
        match (self.total, self.scope, self.period) {
            (Some(total), Some(scope), Some(period)) if self.is_complete => {
                if self.is_granted == Some(true) {
                    return Decided::Granted(total);
                }
                Decided::Refused(SpendRow {
                    scope,
                    period,
                    spent: self.spent.unwrap_or_default(),
                    reserved: self.reserved.unwrap_or_default(),
                })
            }
            _ => Decided::RowMissing,
        }
    }
}

/// `added` is what the run has not reserved yet. Another attempt at the run may reserve at the same
/// time, so both columns grow by it.
const DECIDE: &str = ")), locked as materialized (
        select asked.*, p.spent, p.reserved
        from (select * from asked order by scope collate \"C\", period collate \"C\") asked
        cross join lateral (
            select spent, reserved from spend_periods p
            where p.tenant = $1 and p.scope = asked.scope and p.period = asked.period
            for no key update
        ) p
    ), held as materialized (
        select locked.*, coalesce(r.amount, 0) as amount, most - spent - reserved + coalesce(r.amount, 0) as room
        from locked left join spend_reservations r
            on r.tenant = $1 and r.run_id = $2 and r.scope = locked.scope and r.period = locked.period
    ), decision as materialized (
        select least(greatest($4, $3 + min(room) / 100), min(room), $5) as total,
            count(*) = (select count(*) from asked) as is_complete
        from held
    ), granted as materialized (
        select held.*, total - amount as added from held cross join decision where is_complete and total >= $3
    ), taken as (
        update spend_periods p set reserved = p.reserved + granted.added, most = granted.most
        from granted
        where p.tenant = $1 and p.scope = granted.scope and p.period = granted.period
    ), reservation as (
        insert into spend_reservations (tenant, run_id, scope, period, amount, expires_at)
        select $1, $2, scope, period, added, $6 from granted
        on conflict (tenant, run_id, scope, period) do update
            set amount = spend_reservations.amount + excluded.amount, expires_at = excluded.expires_at
    )
    select is_complete, total, total >= $3 as is_granted, tightest.scope, tightest.period, tightest.spent,
        tightest.reserved
    from decision left join lateral (select * from held order by room limit 1) tightest on true";
