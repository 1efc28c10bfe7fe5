//! Reserves spending on SQLite, with several statements in one transaction.

use crate::rows::{SpendRow, row, values};
use crate::sql::{Connection, Decided, Ended, NewReservation, RESERVE, Statement};

row! {
    /// A limit, with the amount of it that the run has reserved.
    #[derive(Debug)]
    struct LimitRow {
        amount: i64,
        ;
        spend: SpendRow,
    }
}

/// Decides about a reservation, and makes it.
pub(super) async fn take_in_txn(
    mut connection: Connection<'_>,
    reservation: NewReservation,
) -> Result<Ended<Decided>, sqlx::Error> {
    let NewReservation {
        tenant,
        run_id,
        limits,
        least,
        ..
    } = &reservation;
    let mut rows = Vec::with_capacity(limits.len());
    for limit in limits {
        let statement = "select p.scope, p.period, spent, reserved, coalesce(amount, 0) as amount
            from spend_periods p left join spend_reservations r
                on r.tenant = p.tenant and r.run_id = $2 and r.scope = p.scope and r.period = p.period
            where p.tenant = $1 and p.scope = $3 and p.period = $4";
        let values = values![tenant, *run_id, &limit.scope, &limit.period];
        let found: Option<LimitRow> = connection
            .fetch_optional(Statement::with(RESERVE, statement, values))
            .await?;
        let Some(row) = found else {
            return Ok(Ended::RolledBack(Decided::RowMissing));
        };
        let room = limit
            .most
            .saturating_sub(row.spend.spent)
            .saturating_sub(row.spend.reserved)
            + row.amount;
        rows.push((room, limit, row));
    }
    rows.sort_by_key(|(room, ..)| *room);
    let Some((room, ..)) = rows.first() else {
        return Ok(Ended::RolledBack(Decided::RowMissing));
    };
    let total = reservation
        .wanted
        .max(least.saturating_add(room / 100))
        .min(*room)
        .min(reservation.most);
    if total < *least {
        let (_, _, tightest) = rows.swap_remove(0);
        return Ok(Ended::RolledBack(Decided::Refused(tightest.spend)));
    }
    for (_, limit, row) in &rows {
        let added = total - row.amount;
        let take = "update spend_periods set reserved = reserved + $4, most = $5
            where tenant = $1 and scope = $2 and period = $3";
        let values = values![tenant, &limit.scope, &limit.period, added, limit.most];
        connection.execute(Statement::with(RESERVE, take, values)).await?;
        let reserve = "insert into spend_reservations (tenant, run_id, scope, period, amount, expires_at)
            values ($1, $2, $3, $4, $5, $6)
            on conflict (tenant, run_id, scope, period) do update
                set amount = amount + excluded.amount, expires_at = excluded.expires_at";
        let values = values![
            tenant,
            *run_id,
            &limit.scope,
            &limit.period,
            added,
            reservation.expires_at
        ];
        connection.execute(Statement::with(RESERVE, reserve, values)).await?;
    }
    Ok(Ended::Committed(Decided::Granted(total)))
}
