//! The statement that inserts sessions and ends their runs. It removes their runs from the queue.
//!
//! The table `done` has the writes that take effect. All later parts write for these only.

use std::sync::OnceLock;

use sqlx::PgConnection;
use sqlx::postgres::PgRow;

use super::arrays::{ColumnArrays, Number, cached_text, definitions, events_text, fetch_all};
use crate::new_end::NewEnd;
use crate::rows::LeaseKey;
use values::tenant::TenantId;

/// The rows that the statement writes. Each row has the number of its session in the batch.
#[derive(Debug, Default)]
pub(super) struct CommitStatement<'v> {
    pub(super) sessions: ColumnArrays<'v>,
    pub(super) states: ColumnArrays<'v>,
    /// The records of light runs.
    runs: ColumnArrays<'v>,
    /// The leases of runs that leave the queue, with their records and events.
    leases: ColumnArrays<'v>,
    ended_runs: ColumnArrays<'v>,
    events: ColumnArrays<'v>,
    /// What the runs have spent that have reserved spending.
    settlements: ColumnArrays<'v>,
}

impl<'v> CommitStatement<'v> {
    /// Adds the end of the run of a session.
    pub(super) fn push_end(&mut self, tenant: &'v TenantId, number: &'v Number, end: &'v NewEnd) {
        if let Some(lease) = &end.lease {
            self.push_queued_end(tenant, number, lease, end);
        } else {
            self.runs.push(tenant, &[number, &end.run]);
            self.push_rest(tenant, number, end);
        }
    }

    /// Adds the end of a run in the queue.
    pub(super) fn push_queued_end(
        &mut self,
        tenant: &'v TenantId,
        number: &'v Number,
        lease: &'v LeaseKey,
        end: &'v NewEnd,
    ) {
        self.leases.push(tenant, &[number, lease]);
        self.ended_runs.push(tenant, &[number, &end.run]);
        self.push_rest(tenant, number, end);
    }

    fn push_rest(&mut self, tenant: &'v TenantId, number: &'v Number, end: &'v NewEnd) {
        if let Some(events) = &end.events {
            self.events.push(tenant, &[number, events]);
        }
        if let Some(settlement) = &end.settlement {
            self.settlements.push(tenant, &[number, settlement]);
        }
    }

    /// Executes the statement. Returns a row for each write that took effect.
    pub(super) async fn execute(self, connection: &mut PgConnection) -> Result<Vec<PgRow>, sqlx::Error> {
        static TEXTS: [OnceLock<String>; 64] = [const { OnceLock::new() }; 64];
        let Self {
            sessions,
            states,
            runs,
            leases,
            events,
            settlements,
            ..
        } = &self;
        let tables = [sessions, states, runs, leases, events, settlements];
        let text = cached_text(&TEXTS, &tables, || self.build_text());
        let tables = [
            self.sessions,
            self.states,
            self.runs,
            self.leases,
            self.ended_runs,
            self.events,
            self.settlements,
        ];
        fetch_all(connection, text, tables).await
    }

    fn build_text(&self) -> String {
        let mut parts = definitions(&[
            ("session", &self.sessions),
            ("state", &self.states),
            ("run", &self.runs),
            ("lease", &self.leases),
            ("ended_run", &self.ended_runs),
            ("events", &self.events),
            ("settlement", &self.settlements),
        ]);
        if !self.leases.is_empty() {
            parts.push(LEASED.to_owned());
        }
        parts.push(if self.sessions.is_empty() {
            WITHOUT_SESSION.to_owned()
        } else {
            self.session_insert()
        });
        if !self.states.is_empty() {
            parts.push(self.state_insert());
        }
        if !self.runs.is_empty() {
            parts.push(self.run_insert());
        }
        if !self.leases.is_empty() {
            parts.push(self.ending());
        }
        if !self.events.is_empty() {
            parts.push(events_text(&self.events));
        }
        if !self.settlements.is_empty() {
            parts.push(SETTLED.to_owned());
        }
        format!("with {} select number, appends from done", parts.join(", "))
    }

    /// Takes the positions and inserts the sessions. The segment of a position is inserted for one
    /// session only, and decides whether the position was free.
    ///
    /// The search among `appending` is no join, so that the rows stay in their order. With the
    /// offset, it is made once for each row.
    fn session_insert(&self) -> String {
        let columns = self.sessions.names_from("session_id", "");
        let condition = if self.leases.is_empty() {
            "true"
        } else {
            "(not is_queued or number in (select number from leased))"
        };
        format!(
            "based as materialized (
                select session.* from session where parent_session_id is null and {condition}
                union all
                select session.* from session cross join lateral (
                    select from sessions s
                    where s.tenant = session.tenant and s.session_id = session.parent_session_id
                        and s.branch_id = session.parent_branch_id and s.position = session.parent_position
                    for share
                ) parent
                where parent_session_id is not null and {condition}
            ), appending as materialized (
                select min(number) as number from based
                where next_branch_id is not null
                group by tenant, next_branch_id, next_position
            ), placed as materialized (
                select *,
                    case when appends then next_branch_id else fork_branch_id end as branch_id,
                    case when appends then next_position else 0 end as position
                from (select *, number in (select number from appending) as appends from based offset 0) based
                where appends or fork_branch_id is not null
            ), branch as (
                insert into history_branches (tenant, branch_id, parent_branch_id, parent_position)
                select tenant, branch_id, parent_branch_id, parent_position from placed where not appends
            ), segment as (
                insert into history_segments (
                    tenant, branch_id, session_id, position, first_index, message_count, schema_version, encoding,
                    payload)
                select tenant, branch_id, session_id, position, first_index, segment_messages, segment_version,
                    segment_encoding, segment_payload
                from placed
                on conflict do nothing
                returning tenant, branch_id, position
            ), done as (
                select placed.* from placed join segment using (tenant, branch_id, position)
            ), new_session as (
                insert into sessions (tenant, branch_id, position, {columns})
                select tenant, branch_id, position, {columns} from done
            )"
        )
    }

    /// Inserts the states that are not stored yet. Locks the rows of stored ones, so that no
    /// removal deletes them. If another transaction inserts a state at the same moment, `on
    /// conflict` locks its row.
    fn state_insert(&self) -> String {
        let (columns, values) = (
            self.states.names_from("kind", ""),
            self.states.names_from("kind", "state."),
        );
        format!(
            "stored_state as materialized (
                select state.tenant, state.hash from state cross join lateral (
                    select from states s where s.tenant = state.tenant and s.hash = state.hash for key share
                ) stored
            ), new_state as (
                insert into states (tenant, {columns})
                select distinct on (tenant, hash) tenant, {values}
                from state join done using (tenant, number)
                where not exists (
                    select from stored_state
                    where stored_state.tenant = state.tenant and stored_state.hash = state.hash)
                order by tenant, hash
                on conflict (tenant, hash) do update set kind = excluded.kind where false
            )"
        )
    }

    fn run_insert(&self) -> String {
        let (columns, values) = (
            self.runs.names_from("run_id", ""),
            self.runs.names_from("run_id", "run."),
        );
        format!(
            "new_run as (
                insert into runs (tenant, {columns})
                select tenant, {values} from run join done using (tenant, number)
            )"
        )
    }

    /// Ends the runs with a lease: they leave the queue, and only their records and events stay.
    fn ending(&self) -> String {
        let (columns, values) = (
            self.ended_runs.names_from("session_id", ""),
            self.ended_runs.names_from("session_id", "ended_run."),
        );
        format!(
            "unqueued as (
                delete from run_queue q using done d
                where d.is_queued and q.tenant = d.tenant and q.run_id = d.run_id
            ), old_journal as (
                delete from run_journal j using done d
                where d.is_queued and j.tenant = d.tenant and j.run_id = d.run_id
            ), late_message as (
                update run_messages m set status = 'too_late' from done d
                where d.is_queued and m.tenant = d.tenant and m.run_id = d.run_id and m.status = 'received'
            ), ended as (
                update runs r set ({columns}) = row({values})
                from ended_run join done using (tenant, number)
                where r.tenant = ended_run.tenant and r.run_id = ended_run.run_id
            )"
        )
    }
}

/// Locks the rows of runs in the queue whose leases are in force. A run in the queue always has a
/// record.
const LEASED: &str = "leased as materialized (
        select lease.number from lease cross join lateral (
            select from run_queue q
            where q.tenant = lease.tenant and q.run_id = lease.run_id and q.fence = lease.fence
                and exists (select from runs r where r.tenant = q.tenant and r.run_id = q.run_id)
            for update
        ) queued
    )";

/// The runs that end without a session. The calls that they were to answer are open again.
const WITHOUT_SESSION: &str = "done as materialized (
        select *, true as is_queued, true as appends from lease where number in (select number from leased)
    ), reopened as (
        update runs r set status = 'waiting', answer_run_id = null from done d
        where r.tenant = d.tenant and r.answer_run_id = d.run_id
    )";

/// Ends the reservations of runs. First locks the limits that count them, in the order of their
/// keys, as all other writes of them do. The deletion of the reservations has to come after that,
/// so it refers to what is locked.
const SETTLED: &str = "reserved as materialized (
        select r.tenant, r.scope, r.period, r.run_id, settlement.spent
        from settlement join done using (tenant, number) join spend_reservations r using (tenant, run_id)
    ), locked_period as materialized (
        select count(*) as count
        from (select distinct tenant, scope, period from reserved order by tenant, scope, period) reserved
        cross join lateral (
            select from spend_periods p
            where p.tenant = reserved.tenant and p.scope = reserved.scope and p.period = reserved.period
            for no key update
        ) p
    ), returned as (
        delete from spend_reservations r using reserved
        where r.tenant = reserved.tenant and r.run_id = reserved.run_id and r.scope = reserved.scope
            and r.period = reserved.period and (select count from locked_period) >= 0
        returning r.tenant, r.scope, r.period, r.amount, reserved.spent
    ), settled as (
        update spend_periods p set spent = p.spent + change.spent, reserved = p.reserved - change.amount
        from (
            select tenant, scope, period, sum(spent)::bigint as spent, sum(amount)::bigint as amount
            from returned group by tenant, scope, period
        ) change
        where p.tenant = change.tenant and p.scope = change.scope and p.period = change.period
    )";
