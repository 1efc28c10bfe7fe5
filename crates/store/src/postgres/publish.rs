//! Publishes sessions with one statement: any number of them, each all or nothing.
//!
//! The statement is atomic, and any error undoes all of it. A session whose position is taken, or
//! whose parent does not exist, is left out. It refuses no other session. Of the sessions that
//! continue the same one, the first that nothing else refuses tries the position after it. The
//! others open branches at once or are left out, as their conflict policies say.
//!
//! Rows are sorted by their keys, and the statement writes the tables in the same order each time.
//! So two processes that publish the same states, or take the same positions, wait for each other
//! in one order, and never deadlock.

use std::sync::OnceLock;

use async_trait::async_trait;
use sqlx::{PgConnection, Row as _};
use uuid::Uuid;

use super::arrays::{ColumnArrays, Number, decisions};
use super::batch_write::{BatchWrite, WriteKey};
use crate::codec::Payload;
use crate::new_end::NewEnd;
use crate::publication::{Publication, Publications};
use crate::rows::{Row, SessionRow, Value};
use crate::sql::events_conflict;
use crate::traits::ConflictPolicy;
use values::session::{BranchPosition, Hash};
use values::tenant::TenantId;

/// A session to publish, with the position to try.
#[derive(Debug, Clone, Copy)]
pub(super) struct Publish<'v> {
    pub(super) publication: &'v Publication,
    /// The end of its run, unless other statements write it. A run with a lease leaves the queue.
    pub(super) end: Option<&'v NewEnd>,
    pub(super) target: Target,
}

/// The position that a session takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Target {
    /// The position after that of its parent. If another session of the statement takes it, a
    /// session that may fork opens a branch. If it is taken otherwise, the session is refused.
    Append,
    /// The first position of a branch of its own.
    Branch,
}

impl Target {
    /// Returns the target to try first. A session without a parent opens a branch.
    pub(super) fn first_of(publication: &Publication) -> Self {
        match publication.parent {
            Some(_) => Self::Append,
            None => Self::Branch,
        }
    }

    /// Returns the target to try next if this one was refused.
    pub(super) fn after_refusal(self, publication: &Publication) -> Option<Self> {
        let forks = self == Self::Append && publication.conflict == ConflictPolicy::Fork;
        forks.then_some(Self::Branch)
    }

    /// Returns the position.
    pub(super) fn position(self, publication: &Publication) -> BranchPosition {
        match self {
            Self::Append => publication.head.position,
            Self::Branch => publication.fork,
        }
    }
}

/// A commit of one session and the end of its run, with the position to try.
#[derive(Debug)]
pub(super) struct PlainPublish {
    pub(super) publications: Publications,
    pub(super) target: Target,
}

#[async_trait]
impl BatchWrite for PlainPublish {
    /// The position that it took, unless it was refused.
    type Decision = Option<Target>;

    /// Returns the branch of its own, so that a batch has no commit twice.
    fn key(&self) -> Option<WriteKey> {
        let own = &self.publications.own;
        Some(WriteKey::Branch(own.tenant.clone(), own.fork.branch_id.as_uuid()))
    }

    fn bytes(&self) -> usize {
        self.publications.own.bytes() + self.publications.end.as_ref().map_or(0, NewEnd::bytes)
    }

    async fn execute_all(connection: &mut PgConnection, writes: &[&Self]) -> Result<Vec<Option<Target>>, sqlx::Error> {
        let publishes = writes.iter().map(|write| Publish {
            publication: &write.publications.own,
            end: write.publications.end.as_ref(),
            target: write.target,
        });
        publish_sessions(connection, &publishes.collect::<Vec<_>>()).await
    }
}

/// Publishes sessions. Returns for each the position that it took, unless it was refused.
pub(super) async fn publish_sessions(
    connection: &mut PgConnection,
    publishes: &[Publish<'_>],
) -> Result<Vec<Option<Target>>, sqlx::Error> {
    let mut rows: Vec<_> = publishes.iter().zip(Number::all()).map(PublishRow::new).collect();
    rows.sort_by_key(PublishRow::key);
    let states: Vec<_> = rows.iter().flat_map(NewState::of).collect();
    let mut batch = Batch::default();
    for row in &rows {
        let tenant = &row.publish.publication.tenant;
        batch.sessions.push(tenant, &[row]);
        if let Some(end) = row.publish.end {
            batch.push_end(tenant, &row.number, end);
        }
    }
    for state in &states {
        batch.states.push(state.tenant, &[state]);
    }
    let query = sqlx::query(batch.statement());
    let query = batch.sessions.bind_to(query);
    let query = batch.states.bind_to(query);
    let query = batch.runs.bind_to(query);
    let query = batch.leases.bind_to(query);
    let query = batch.ended_runs.bind_to(query);
    let query = batch.events.bind_to(query);
    let rows = query.fetch_all(connection).await?;
    decisions(&rows, publishes.len(), |row| {
        let appends = row.try_get(1)?;
        Ok(Some(if appends { Target::Append } else { Target::Branch }))
    })
}

/// A session, numbered in the order of its batch.
#[derive(Debug)]
struct PublishRow<'v> {
    publish: &'v Publish<'v>,
    number: Number,
    session: SessionRow,
}

impl<'v> PublishRow<'v> {
    fn new((publish, number): (&'v Publish<'v>, Number)) -> Self {
        let Publication { head, metadata, .. } = publish.publication;
        Self {
            publish,
            number,
            session: SessionRow::new(head, head.position, metadata),
        }
    }

    fn key(&self) -> (TenantId, Uuid, u64) {
        let publication = self.publish.publication;
        let position = self.publish.target.position(publication);
        (
            publication.tenant.clone(),
            position.branch_id.as_uuid(),
            position.position,
        )
    }
}

impl Row for PublishRow<'_> {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        let publication = self.publish.publication;
        let parent = publication.parent.map(|(_, position)| position);
        let next = (self.publish.target == Target::Append).then_some(publication.head.position);
        let may_fork = next.is_none() || publication.conflict == ConflictPolicy::Fork;
        let segment = &publication.segment;
        self.number.visit(column);
        column(
            "is_queued",
            self.publish.end.is_some_and(|end| end.lease.is_some()).into(),
        );
        column("next_branch_id", next.map(|next| next.branch_id).into());
        column("next_position", next.map(|next| next.position).into());
        column("fork_branch_id", may_fork.then_some(publication.fork.branch_id).into());
        column("parent_branch_id", parent.map(|parent| parent.branch_id).into());
        column("parent_position", parent.map(|parent| parent.position).into());
        column("first_index", segment.first_index.into());
        column("segment_messages", segment.message_count.into());
        column("segment_version", segment.payload.schema_version.into());
        column("segment_encoding", segment.payload.encoding.into());
        column("segment_payload", (&segment.payload.bytes).into());
        // The statement adds the position.
        self.session.visit(&mut |name, value| {
            if !matches!(name, "branch_id" | "position") {
                column(name, value);
            }
        });
    }
}

/// A state of a session that differs from its parent's.
#[derive(Debug)]
struct NewState<'v> {
    tenant: &'v TenantId,
    number: Number,
    kind: &'static str,
    hash: &'v Hash,
    tree: Option<&'v Hash>,
    payload: &'v Payload,
}

impl<'v> NewState<'v> {
    fn of(row: &'v PublishRow<'v>) -> impl Iterator<Item = Self> {
        let publication = row.publish.publication;
        let state = |kind, hash, tree, payload| Self {
            tenant: &publication.tenant,
            number: row.number,
            kind,
            hash,
            tree,
            payload,
        };
        let head = &publication.head;
        let environment = publication.environment.as_ref().map(|environment| {
            let tree = environment.tree.as_ref();
            state("environment", &head.environment_hash, tree, &environment.payload)
        });
        let context = publication.context.as_ref();
        let context = context.map(|context| state("context", &head.context_hash, None, context));
        environment.into_iter().chain(context)
    }
}

impl Row for NewState<'_> {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        self.number.visit(column);
        column("kind", self.kind.into());
        column("hash", self.hash.into());
        column("tree", self.tree.into());
        self.payload.visit(column);
    }
}

/// The rows of a batch. Those of states and runs have the number of their session.
#[derive(Debug, Default)]
struct Batch<'v> {
    sessions: ColumnArrays<'v>,
    states: ColumnArrays<'v>,
    /// The records of light runs.
    runs: ColumnArrays<'v>,
    /// The leases of runs that leave the queue, with their records and events.
    leases: ColumnArrays<'v>,
    ended_runs: ColumnArrays<'v>,
    events: ColumnArrays<'v>,
}

impl<'v> Batch<'v> {
    fn push_end(&mut self, tenant: &'v TenantId, number: &'v Number, end: &'v NewEnd) {
        let Some(lease) = &end.lease else {
            self.runs.push(tenant, &[number, &end.run]);
            return;
        };
        self.leases.push(tenant, &[number, lease]);
        self.ended_runs.push(tenant, &[number, &end.run]);
        if let Some(events) = &end.events {
            self.events.push(tenant, &[number, events]);
        }
    }

    /// Returns the text of the statement. It depends only on which tables have rows.
    fn statement(&self) -> &'static str {
        static TEXTS: [OnceLock<String>; 16] = [const { OnceLock::new() }; 16];
        let tables = [&self.states, &self.runs, &self.leases, &self.events];
        let index = tables
            .into_iter()
            .rev()
            .fold(0, |index, table| 2 * index + usize::from(!table.is_empty()));
        TEXTS[index].get_or_init(|| self.build_statement())
    }

    fn build_statement(&self) -> String {
        let mut parts = Vec::new();
        let mut first = 1;
        for (table, name) in [
            (&self.sessions, "session"),
            (&self.states, "state"),
            (&self.runs, "run"),
            (&self.leases, "lease"),
            (&self.ended_runs, "ended_run"),
            (&self.events, "events"),
        ] {
            if !table.is_empty() {
                let (placeholders, columns) = (table.placeholders(first), table.names());
                parts.push(format!(
                    "{name} as materialized (select * from unnest({placeholders}) as {name} ({columns}))"
                ));
                first += table.width();
            }
        }
        parts.push(self.publishing());
        if !self.states.is_empty() {
            parts.push(self.state_insert());
        }
        if !self.runs.is_empty() {
            let (columns, values) = (
                self.runs.names_from("run_id", ""),
                self.runs.names_from("run_id", "run."),
            );
            parts.push(format!(
                "new_run as (
                    insert into runs (tenant, {columns})
                    select tenant, {values} from run join published using (tenant, number)
                )"
            ));
        }
        if !self.leases.is_empty() {
            parts.push(self.ending());
        }
        if !self.events.is_empty() {
            parts.push(self.events_insert());
        }
        format!("with {} select number, appends from published", parts.join(", "))
    }

    /// Takes the positions and inserts the sessions. The segment of a position is inserted for one
    /// session only, and decides whether the position was free.
    ///
    /// The search among `appending` is no join, so that the rows stay in their order. With the
    /// offset, it is made once for each row.
    fn publishing(&self) -> String {
        let columns = self.sessions.names_from("session_id", "");
        let (leased, condition) = if self.leases.is_empty() {
            ("", "true")
        } else {
            // A run in the queue always has a record.
            let leased = "leased as materialized (
                    select lease.number from lease cross join lateral (
                        select from run_queue q
                        where q.tenant = lease.tenant and q.run_id = lease.run_id and q.fence = lease.fence
                            and exists (select from runs r where r.tenant = q.tenant and r.run_id = q.run_id)
                        for update
                    ) queued
                ), ";
            (leased, "(not is_queued or number in (select number from leased))")
        };
        format!(
            "{leased}based as materialized (
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
                    tenant, branch_id, position, first_index, message_count, schema_version, encoding, payload)
                select tenant, branch_id, position, first_index, segment_messages, segment_version, segment_encoding,
                    segment_payload
                from placed
                on conflict do nothing
                returning tenant, branch_id, position
            ), published as (
                select placed.* from placed join segment using (tenant, branch_id, position)
            ), new_session as (
                insert into sessions (tenant, branch_id, position, {columns})
                select tenant, branch_id, position, {columns} from published
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
                from state join published using (tenant, number)
                where not exists (
                    select from stored_state
                    where stored_state.tenant = state.tenant and stored_state.hash = state.hash)
                order by tenant, hash
                on conflict (tenant, hash) do update set kind = excluded.kind where false
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
                delete from run_queue q using published p
                where p.is_queued and q.tenant = p.tenant and q.run_id = p.run_id
            ), old_journal as (
                delete from run_journal j using published p
                where p.is_queued and j.tenant = p.tenant and j.run_id = p.run_id
            ), late_message as (
                update run_messages m set status = 'too_late' from published p
                where p.is_queued and m.tenant = p.tenant and m.run_id = p.run_id and m.status = 'received'
            ), ended as (
                update runs r set ({columns}) = row({values})
                from ended_run join published using (tenant, number)
                where r.tenant = ended_run.tenant and r.run_id = ended_run.run_id
            )"
        )
    }

    fn events_insert(&self) -> String {
        let (columns, values) = (
            self.events.names_from("first_sequence", ""),
            self.events.names_from("first_sequence", "events."),
        );
        format!(
            concat!(
                "new_events as (
                    insert into run_events (tenant, run_id, {columns})
                    select tenant, run_id, {values} from events join published using (tenant, number)",
                events_conflict!(),
                ")"
            ),
            columns = columns,
            values = values,
        )
    }
}
