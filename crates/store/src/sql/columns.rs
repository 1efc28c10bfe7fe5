//! Parts of statements that several files share, as literals for `concat!`.

/// The condition that a segment `h` belongs to a row `s` of the search in `sql/history.rs`.
macro_rules! segment_condition {
    () => {
        "h.tenant = $1 and h.branch_id = s.branch_id and h.position >= s.position and h.position <= s.last_position \
         and h.first_index < $4 and h.first_index + h.message_count > $3"
    };
}
pub(crate) use segment_condition;

/// A common table expression: the branches on the line to the position `$2`, `$3`, each with the
/// last position on that line.
macro_rules! line_to_position {
    () => {
        "line (branch_id, last_position) as (
            select $2, $3
            union all
            select b.parent_branch_id, b.parent_position
            from line join history_branches b on b.tenant = $1 and b.branch_id = line.branch_id
            where b.parent_branch_id is not null
        )"
    };
}
pub(crate) use line_to_position;

/// The condition that a run has published no session. Indexes have the same condition, so it must
/// stand in each statement that uses them.
macro_rules! without_session {
    ($alias:literal) => {
        concat!(
            "(not ",
            $alias,
            ".publishes or ",
            $alias,
            ".status not in ('completed', 'stopped', 'waiting', 'answered'))"
        )
    };
}
pub(crate) use without_session;

/// Selects the `$4` oldest deliveries that are due at `$1`, for the tenant and receiver of a row of
/// `pair`.
macro_rules! due_in_pair {
    () => {
        "status = 'pending' and tenant = pair.tenant and receiver = pair.receiver and due_at <= $1
            order by due_at limit $4"
    };
}
pub(crate) use due_in_pair;

/// Selects the newest sessions of a row of `tree`, from the index `sessions_by_root` alone. Their
/// number is bounded, since a tree may have any number of sessions.
macro_rules! newest_of_tree {
    () => {
        "select m.session_id, m.created_at from sessions m
            where m.tenant = $1 and m.root_session_id = tree.root_session_id
            order by m.session_id desc limit 1000"
    };
}
pub(crate) use newest_of_tree;

/// The condition of the oldest session `s` of the tree of `figures`: its root, unless that was
/// removed.
macro_rules! oldest_of_tree {
    () => {
        "s.tenant = $1 and s.session_id = coalesce(
            (select r.session_id from sessions r where r.tenant = $1 and r.session_id = figures.root_session_id),
            (select r.session_id from sessions r where r.tenant = $1 and r.root_session_id = figures.root_session_id
                order by r.session_id limit 1))"
    };
}
pub(crate) use oldest_of_tree;

/// A column: the first ten names of threads that point to sessions `n`, with spaces between them.
/// With `cross join`, SQLite looks up the threads of each session, and does not read all threads.
macro_rules! first_threads {
    ($($sessions:tt)+) => {
        concat!(
            "(select string_agg(named.name, ' ') from (
                select t.name from ",
            $($sessions)+,
            " cross join threads t where t.tenant = $1 and t.session_id = n.session_id
                order by t.name limit 10) named)"
        )
    };
}
pub(crate) use first_threads;

/// A common table expression: the session `$2` and its ancestors, including removed ones. `$limit`
/// is the condition to continue with the next ancestor.
macro_rules! ancestors {
    ($limit:literal) => {
        concat!(
            "with recursive ancestor (session_id, parent_session_id, distance) as (
                select session_id, parent_session_id, 1 from sessions where tenant = $1 and session_id = $2
                union all
                select session_id, parent_session_id, 1 from removed_sessions where tenant = $1 and session_id = $2
                union all
                select coalesce(p.session_id, x.session_id),
                    case when p.session_id is null then x.parent_session_id else p.parent_session_id end,
                    ancestor.distance + 1
                from ancestor
                left join sessions p on p.tenant = $1 and p.session_id = ancestor.parent_session_id
                left join removed_sessions x on x.tenant = $1 and x.session_id = ancestor.parent_session_id
                where (p.session_id is not null or x.session_id is not null)",
            $limit,
            ")"
        )
    };
}
pub(crate) use ancestors;

/// The columns of `rows::LeasedRunRow`, without the columns of the run. The alias of the run is
/// `r`, and its row in the queue has the alias `q`.
macro_rules! leased_columns {
    () => {
        "q.tenant as lease_tenant, q.run_id as lease_run_id, q.fence, cast(q.attempts as bigint) as lease_attempts, \
         cast(q.level as bigint) as level, q.turn, q.control, q.moves_thread, q.schema_version as request_version, \
         q.encoding as request_encoding, q.request"
    };
}
pub(crate) use leased_columns;

#[cfg(test)]
mod tests {
    use agent::record::RunStatus;

    #[test]
    fn the_condition_names_each_status_with_a_session() {
        let statuses = [
            RunStatus::Queued,
            RunStatus::Running,
            RunStatus::Waiting,
            RunStatus::Answered,
            RunStatus::Completed,
            RunStatus::Stopped,
            RunStatus::Failed,
            RunStatus::Cancelled,
        ];
        for status in statuses {
            let is_named = without_session!("r").contains(&format!("'{status}'"));
            assert_eq!(is_named, status.has_session(), "{status}");
        }
    }
}
