//! What runs spend. Both engines reserve in their own way, since PostgreSQL does it with one
//! statement.
//!
//! All writes lock the rows of limits before those of reservations, and both in the order of their
//! keys. So no two of them wait for each other.

use async_trait::async_trait;
use chrono::TimeDelta;
use uuid::Uuid;

use super::connection::{Connection, Ended};
use super::engine::Engine;
use super::reservation::{Decided, LimitKey, NewReservation, RESERVE};
use super::statement::{Statement, insert_statement};
use crate::error::StoreError;
use crate::rows::{NewDeliveryRow, SpendNewsRow, SpendRow, values};
use crate::spend::{Reserved, SpendNews, SpendRequest, SpendStanding, SpendStore};
use agent::record::NewDelivery;
use values::clock::Timestamp;
use values::ids::RunId;
use values::limits::SpendLimit;
use values::tenant::TenantId;
use values::usage::Cost;

/// How many runs one statement renews.
const RENEWED_AT_ONCE: usize = 256;
/// How often a reservation is tried again whose limits have had no rows.
const ATTEMPTS: usize = 4;
const SETTLE: &str = "settle spending";
const SWEEP: &str = "sweep reservations";
/// Longer than any run works. What an older one has reserved is forgotten.
const LONGEST_RUN: TimeDelta = TimeDelta::days(8);
const NOTIFY: &str = "notify of spending";

#[async_trait]
impl<E: Engine> SpendStore for E {
    async fn spend_reserve(&self, request: &SpendRequest) -> Result<Reserved, StoreError> {
        let reservation = NewReservation::from(request);
        for _ in 0..ATTEMPTS {
            match self.spend_take(&reservation).await? {
                Decided::Granted(total) => return Ok(Reserved::Granted(Cost::from_microdollars(total))),
                Decided::Refused(row) => {
                    let mut limits = request.limits.iter();
                    let is_of_row =
                        |limit: &&SpendLimit| row.scope == limit.scope.to_string() && row.period == limit.period_name();
                    if let Some(limit) = limits.find(is_of_row) {
                        return Ok(Reserved::Refused(standing(limit.clone(), Some(&row))));
                    }
                }
                Decided::RowMissing => rows_insert(&reservation).execute(self).await.map(drop)?,
            }
        }
        Err(StoreError::failed(RESERVE)(sqlx::Error::RowNotFound))
    }

    async fn spend_renew(&self, runs: &[(TenantId, RunId)], expires_at: Timestamp) -> Result<(), StoreError> {
        for runs in runs.chunks(RENEWED_AT_ONCE) {
            // What has expired was given back already, and has no time. What another transaction
            // has locked is settled or reserved anew by it.
            let begin = "update spend_reservations set expires_at = $1 where (tenant, run_id, scope, period) in (
                select tenant, run_id, scope, period from spend_reservations
                where expires_at is not null and (tenant, run_id) in (values ";
            let mut update = Statement::with("renew reservations", begin, values![expires_at]);
            for (index, (tenant, run_id)) in runs.iter().enumerate() {
                update.push_bind(if index == 0 { "(" } else { "), (" }, tenant);
                update.push_bind(", ", *run_id);
            }
            update.push("))");
            update.push(E::SKIP_LOCKED);
            update.push(")");
            update.execute(self).await?;
        }
        Ok(())
    }

    async fn spend_release(&self, tenant: &TenantId, run_id: RunId) -> Result<(), StoreError> {
        let (tenant, run_id) = (tenant.clone(), run_id.as_uuid());
        let releasing = self.transact(SETTLE, move |mut connection| {
            Box::pin(async move {
                settle_on_conn::<E>(&mut connection, &tenant, run_id, 0).await?;
                Ok(Ended::Committed(()))
            })
        });
        releasing.await
    }

    async fn spend_sweep(&self, now: Timestamp) -> Result<u64, StoreError> {
        // Most sweeps find nothing, and begin no transaction.
        let statement = "select 1 from spend_reservations where expires_at <= $1 or expires_at is null limit 1";
        let select = Statement::with(SWEEP, statement, values![now]);
        let found: Option<(i32,)> = select.fetch_optional(self).await?;
        if found.is_none() {
            return Ok(0);
        }
        let sweeping = self.transact(SWEEP, move |mut connection| {
            Box::pin(async move { sweep_in_txn::<E>(&mut connection, now).await.map(Ended::Committed) })
        });
        sweeping.await
    }

    async fn spend_list(&self, tenant: &TenantId, limits: Vec<SpendLimit>) -> Result<Vec<SpendStanding>, StoreError> {
        let keys: Vec<_> = limits.iter().map(LimitKey::from).collect();
        let statement = "select scope, period, spent, reserved from spend_periods where tenant = $1 and (scope, period) in (values ";
        let mut select = Statement::with("list spending", statement, values![tenant]);
        for (index, key) in keys.iter().enumerate() {
            select.push_bind(if index == 0 { "(" } else { "), (" }, &key.scope);
            select.push_bind(", ", &key.period);
        }
        select.push("))");
        let rows: Vec<SpendRow> = if keys.is_empty() {
            Vec::new()
        } else {
            select.fetch_all(self).await?
        };
        let standings = limits.into_iter().zip(&keys).map(|(limit, key)| {
            let row = rows
                .iter()
                .find(|row| row.scope == key.scope && row.period == key.period);
            standing(limit, row)
        });
        Ok(standings.collect())
    }

    async fn spend_news(&self, periods: &[String], percent: i64) -> Result<Vec<SpendNews>, StoreError> {
        let begin = "select tenant, scope, period, spent, reserved, most, notified from spend_periods
            where spent * 100 >= most * $1 and notified < 100 and period in (''";
        let mut select = Statement::with(NOTIFY, begin, values![percent]);
        for period in periods {
            select.push_bind(", ", period);
        }
        select.push(") order by tenant, scope, period");
        select.list::<SpendNewsRow, _>(self).await
    }

    async fn spend_notify(&self, news: &SpendNews, percent: i16, delivery: &NewDelivery) -> Result<bool, StoreError> {
        let delivery = NewDeliveryRow::new(None, delivery).map_err(StoreError::failed(NOTIFY))?;
        let SpendNews {
            tenant, scope, period, ..
        } = news.clone();
        let notifying = self.transact(NOTIFY, move |mut connection| {
            Box::pin(async move {
                let statement = "update spend_periods set notified = $4
                    where tenant = $1 and scope = $2 and period = $3 and notified < $4";
                let values = values![&tenant, &scope, &period, percent];
                if connection.execute(Statement::with(NOTIFY, statement, values)).await? == 0 {
                    return Ok(Ended::RolledBack(false));
                }
                let insert = insert_statement(NOTIFY, "insert into webhook_deliveries (tenant, ", &tenant, &delivery);
                connection.execute(insert).await?;
                Ok(Ended::Committed(true))
            })
        });
        notifying.await
    }
}

/// Ends the reservations of a run, which has spent so many microdollars.
pub(crate) async fn settle_on_conn<E: Engine>(
    connection: &mut Connection<'_>,
    tenant: &TenantId,
    run_id: Uuid,
    spent: i64,
) -> Result<(), sqlx::Error> {
    let lock = "select 1 from spend_periods where tenant = $1
        and (scope, period) in (select scope, period from spend_reservations where tenant = $1 and run_id = $2)
        order by scope, period";
    let mut lock = Statement::with(SETTLE, lock, values![tenant, run_id]);
    lock.push(E::LOCK);
    let locked: Vec<(i32,)> = connection.fetch_all(lock).await?;
    if locked.is_empty() {
        return Ok(());
    }
    let settle = "update spend_periods set spent = spent + $3, reserved = reserved - (
            select amount from spend_reservations r
            where r.tenant = $1 and r.run_id = $2 and r.scope = spend_periods.scope and r.period = spend_periods.period)
        where tenant = $1
            and (scope, period) in (select scope, period from spend_reservations where tenant = $1 and run_id = $2)";
    connection
        .execute(Statement::with(SETTLE, settle, values![tenant, run_id, spent]))
        .await?;
    let delete = "delete from spend_reservations where tenant = $1 and run_id = $2";
    connection
        .execute(Statement::with(SETTLE, delete, values![tenant, run_id]))
        .await?;
    Ok(())
}

/// Gives back what has expired. The rows stay for a while without an amount, since they tell which
/// limits count the run if it ends after all.
async fn sweep_in_txn<E: Engine>(connection: &mut Connection<'_>, now: Timestamp) -> Result<u64, sqlx::Error> {
    let lock = "select 1 from spend_periods p where exists (
            select 1 from spend_reservations r
            where r.expires_at <= $1 and r.tenant = p.tenant and r.scope = p.scope and r.period = p.period)
        order by tenant, scope, period";
    let mut lock = Statement::with(SWEEP, lock, values![now]);
    lock.push(E::LOCK);
    let _locked: Vec<(i32,)> = connection.fetch_all(lock).await?;
    let expire = "update spend_reservations set expires_at = null where expires_at <= $1";
    let expired = connection.execute(Statement::with(SWEEP, expire, values![now])).await?;
    if expired > 0 {
        let give_back = "update spend_periods set reserved = reserved - (
                select sum(amount) from spend_reservations r
                where r.expires_at is null and r.tenant = spend_periods.tenant
                    and r.scope = spend_periods.scope and r.period = spend_periods.period)
            where (tenant, scope, period) in (
                select tenant, scope, period from spend_reservations where expires_at is null and amount > 0)";
        connection.execute(Statement::new(SWEEP, give_back)).await?;
        let empty = "update spend_reservations set amount = 0 where expires_at is null and amount > 0";
        connection.execute(Statement::new(SWEEP, empty)).await?;
    }
    let forget = "delete from spend_reservations where expires_at is null and run_id < $1";
    let forgotten = RunId::first_at(now - LONGEST_RUN);
    connection
        .execute(Statement::with(SWEEP, forget, values![forgotten]))
        .await?;
    Ok(expired)
}

/// Inserts the rows of limits that have none.
fn rows_insert(reservation: &NewReservation) -> Statement<'_> {
    let begin = "insert into spend_periods (tenant, scope, period, most) values ";
    let mut insert = Statement::new(RESERVE, begin);
    for (index, limit) in reservation.limits.iter().enumerate() {
        insert.push_bind(if index == 0 { "(" } else { "), (" }, &reservation.tenant);
        insert.push_bind(", ", &limit.scope);
        insert.push_bind(", ", &limit.period);
        insert.push_bind(", ", limit.most);
    }
    insert.push(") on conflict do nothing");
    insert
}

fn standing(limit: SpendLimit, row: Option<&SpendRow>) -> SpendStanding {
    let amount = |micro: fn(&SpendRow) -> i64| row.map(|row| Cost::from_microdollars(micro(row))).unwrap_or_default();
    SpendStanding {
        limit,
        spent: amount(|row| row.spent),
        reserved: amount(|row| row.reserved),
    }
}
