//! Selects the sessions to remove, as tables at the start of statements. The last table is `going`:
//! the `tenant` and `session_id` of each session. The sessions of a `family`, whose rows have the
//! same `top_id`, are removed together.

use crate::rows::Value;
use crate::sql::Statement;
use crate::sql::columns::without_session;

/// The condition that a thread points to the session with the given alias, or that a queued run
/// begins from it. Both are looked up for each session: `offset` stops the planner from reading all
/// threads or the whole queue.
macro_rules! in_use {
    ($alias:literal) => {
        concat!(
            "(exists (
                select 1 from threads t
                where t.tenant = ",
            $alias,
            ".tenant and t.session_id = ",
            $alias,
            ".session_id
                limit 1 offset 0)
            or exists (
                select 1 from runs r join run_queue q on q.tenant = r.tenant and q.run_id = r.run_id
                where ",
            without_session!("r"),
            " and r.tenant = ",
            $alias,
            ".tenant and r.base_session_id = ",
            $alias,
            ".session_id
                limit 1 offset 0))"
        )
    };
}

/// The condition that a session `s` is among the last `$2` that moved a thread which still exists.
macro_rules! among_last {
    () => {
        "exists (
            select 1 from runs r join threads t on t.tenant = r.tenant and t.name = r.thread
            where r.tenant = s.tenant and r.run_id = s.run_id and r.session_id = s.session_id and r.thread_moved
                and (select count(*) from (
                    select 1 from runs n join sessions k on k.tenant = n.tenant and k.session_id = n.session_id
                    where n.tenant = r.tenant and n.thread = r.thread and n.thread_moved and n.run_id > r.run_id
                    limit $2) newer) < $2)"
    };
}

/// The sessions that moved threads `t`. The newest one of a thread has the lowest rank.
macro_rules! ranked {
    ($threads:literal) => {
        concat!(
            "select r.tenant, r.session_id, s.created_at,
                row_number() over (partition by r.tenant, r.thread order by r.run_id desc) as rank
            from threads t
            join runs r on r.tenant = t.tenant and r.thread = t.name and r.thread_moved
            join sessions s on s.tenant = r.tenant and s.session_id = r.session_id
            where ",
            $threads
        )
    };
}

/// Extends the picked sessions by their subagents' sessions. Leaves out a family if any of its
/// sessions is in use.
macro_rules! going_with_family {
    () => {
        concat!(
            ", family (top_id, tenant, session_id) as (
                select session_id, tenant, session_id from picked
                union all
                select f.top_id, k.tenant, k.session_id
                from family f join sessions k on k.tenant = f.tenant and k.subagent_of = f.session_id
            ), going as (
                select f.tenant, f.session_id from family f
                where not exists (
                    select 1 from family m
                    where m.tenant = f.tenant and m.top_id = f.top_id and ",
            in_use!("m"),
            ")
            )"
        )
    };
}

/// Selects sessions of the tenant `$4` created before `$3`, after `$5` up to `$6`. A subagent's
/// session is removed with the session that started it.
pub(super) const AGED: &str = concat!(
    "with recursive picked as (
        select s.tenant, s.session_id from sessions s
        where s.tenant = $4 and s.session_id > $5 and s.session_id <= $6 and s.created_at < $3
            and s.subagent_of is null and not ",
    among_last!(),
    ")",
    going_with_family!()
);

/// Selects up to `$8` sessions created before `$3` that are not among the last `$2` of their
/// threads. Checks the threads after `$4`, `$5` up to `$6`, `$7`. Leaves out sessions in use before
/// the limit applies. Otherwise they could use up the limit, and the others would never be found.
pub(super) const OVERTAKEN: &str = concat!(
    "with recursive picked as (
        select s.tenant, s.session_id from (",
    ranked!("(t.tenant, t.name) > ($4, $5) and (t.tenant, t.name) <= ($6, $7)"),
    ") s
        where s.rank > $2 and s.created_at < $3 and not exists (
            with recursive own (tenant, session_id) as (
                select s.tenant, s.session_id
                union all
                select k.tenant, k.session_id
                from own o join sessions k on k.tenant = o.tenant and k.subagent_of = o.session_id
            )
            select 1 from own m where ",
    in_use!("m"),
    ")
        order by s.rank desc, s.session_id
        limit $8
    )",
    going_with_family!()
);

/// Selects all sessions to remove by either rule: created before `$3` with an id below `$8`, or
/// created before `$4` and not among the last `$2` of their threads.
pub(super) const ALL: &str = concat!(
    "with recursive picked as (
        select s.tenant, s.session_id from sessions s
        where s.created_at < $3 and s.session_id < $8 and s.subagent_of is null and not ",
    among_last!(),
    "
        union
        select s.tenant, s.session_id from (",
    ranked!("$2 > 0"),
    ") s
        where s.rank > $2 and s.created_at < $4
    )",
    going_with_family!()
);

/// Follows an engine's `TREE`. Selects up to `$4` of its sessions, each after all that depend on
/// it. If `$3` is not 1, selects only the session itself and its family.
pub(super) const TREE_SESSIONS: &str = " select k.session_id
    from tree t join sessions k on k.tenant = $1 and k.session_id = t.session_id
    group by k.session_id
    having $3 = 1 or max(t.family) = 1
    order by max(t.level) desc, k.session_id
    limit $4";

/// Begins the selection of a batch of sessions of the tree of `$2`: their ids, [`BATCH_FREE`] and a
/// mark follow.
pub(super) const BATCH_SESSIONS: &str = "with family (top_id, tenant, session_id) as (
        select $2, s.tenant, s.session_id from sessions s where s.tenant = $1 and s.session_id in (";

/// Ends the selection. Removes each session unless it is in use or another session depends on it.
/// Removes none if the first session of the tree is in use.
pub(super) const BATCH_FREE: &str = concat!(
    ")
    ), going as (
        select f.tenant, f.session_id from family f
        where not exists (
                select 1 from sessions k
                where k.tenant = f.tenant and k.parent_session_id = f.session_id
                    and k.session_id not in (select session_id from family))
            and not exists (
                select 1 from sessions k
                where k.tenant = f.tenant and k.subagent_of = f.session_id
                    and k.session_id not in (select session_id from family))
            and not ",
    in_use!("f"),
    "
            and not exists (
                select 1 from sessions top
                where top.tenant = $1 and top.session_id = $2 and ",
    in_use!("top"),
    ")
    )"
);

/// Follows an engine's `TREE`. Selects three numbers: whether the session exists, whether others
/// continue it, and whether any of its family is in use.
pub(super) const FAMILY_STATE: &str = concat!(
    ", doomed (tenant, session_id, family) as (
        select k.tenant, k.session_id, max(t.family)
        from tree t join sessions k on k.tenant = $1 and k.session_id = t.session_id
        group by k.tenant, k.session_id
    )
    select
        (select count(*) from sessions where tenant = $1 and session_id = $2) as present,
        (select count(*) from doomed where family = 0) as descendants,
        (select count(*) from doomed m where ($3 = 1 or m.family = 1) and ",
    in_use!("m"),
    ") as used"
);

/// Counts the sessions of a selection.
pub(super) const COUNT: &str = " select count(*) as found from going";

/// A selection with its values.
#[derive(Debug)]
pub(super) struct Selection<'a> {
    pub(super) text: &'static str,
    pub(super) values: Vec<Value<'a>>,
}

impl<'a> Selection<'a> {
    /// Begins a statement with a text and the selection.
    pub(super) fn begin(&self, operation: &'static str, begin: &'static str) -> Statement<'a> {
        let mut statement = Statement::with(operation, begin, self.values.clone());
        statement.push(self.text);
        statement
    }
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Connection as _, Row as _, SqliteConnection};

    use super::*;
    use crate::migration::SQLITE;
    use crate::sql::Engine as _;
    use crate::sqlite::SqliteStore;

    #[tokio::test]
    async fn selections_scan_no_table_on_sqlite() {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
        for migration in SQLITE {
            sqlx::raw_sql(migration.sql).execute(&mut connection).await.unwrap();
        }
        let batch = [BATCH_SESSIONS, "$4, $5", BATCH_FREE].concat();
        let tree = [SqliteStore::TREE, TREE_SESSIONS].concat();
        let counted = [AGED, OVERTAKEN, &batch].map(|selection| format!("{selection}{COUNT}"));
        for statement in counted.iter().chain([&tree]) {
            let explain = format!("explain query plan {statement}");
            let plan = sqlx::query(AssertSqlSafe(explain))
                .fetch_all(&mut connection)
                .await
                .unwrap();
            let plan: Vec<String> = plan.iter().map(|row| row.get("detail")).collect();
            let tables = ["r", "q", "t", "s", "k", "runs", "run_queue", "threads", "sessions"];
            // The tables of the selection have some of these names, too.
            let picked = |name: &str| name == "t" || plan.contains(&format!("CO-ROUTINE {name}"));
            let scans = |line: &&String| {
                let name = line.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next());
                name.is_some_and(|name| tables.contains(&name) && !picked(name))
            };
            let uses_runs = *statement != tree;
            assert_eq!(
                plan.iter().any(|line| line.contains("runs_without_session_by_base")),
                uses_runs,
                "{plan:#?}"
            );
            assert_eq!(plan.iter().find(scans), None, "{plan:#?}");
        }
    }
}
