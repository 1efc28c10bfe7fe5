//! Column lists that several statements share, as literals for `concat!`. They use the table
//! aliases `s` and `r`.

/// The columns of `rows::SessionRow`.
macro_rules! session_columns {
    () => {
        "s.session_id, s.parent_session_id, s.run_id, s.subagent_of, s.branch_id, s.position, s.depth, s.execution_count, \
         s.message_count, s.history_start, s.created_at, s.schema_version, s.agent, s.agent_version, s.root_hash, s.environment_hash, \
         s.context_hash, s.segment_hash, s.metadata"
    };
}
pub(crate) use session_columns;

/// The columns of `rows::RunSummaryRow`.
macro_rules! run_columns {
    () => {
        "r.run_id, r.session_id, r.base_session_id, r.agent, r.agent_version, r.model, r.mode, r.status, \
         r.stop_reason, r.input_tokens, r.output_tokens, r.cache_read_tokens, r.cache_write_tokens, \
         r.reasoning_tokens, r.total_tokens, r.cost, r.step_count, r.error, r.metadata, r.created_at, r.started_at, \
         r.completed_at, r.schema_version, r.event_count, r.attempts, r.durability, r.thread, r.thread_moved, \
         r.cost_known_part, r.answered_by"
    };
}
pub(crate) use run_columns;

/// The condition on a segment `h` that `sql/history.rs` looks for with a row `s` of its search.
macro_rules! segment_condition {
    () => {
        "h.tenant = $1 and h.branch_id = s.branch_id and h.position >= s.position and h.position <= s.last_position \
         and h.first_index < $4 and h.first_index + h.message_count > $3"
    };
}
pub(crate) use segment_condition;

/// A common table expression: the branches that lead to the place `$2`, `$3`, each with its last position that counts.
macro_rules! line_of_place {
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
pub(crate) use line_of_place;

/// The columns of `rows::DeliveryRow`.
macro_rules! delivery_columns {
    () => {
        "delivery_id, run_id, event, url, secret, status, attempts, response_status, error, created_at, due_at, delivered_at"
    };
}
pub(crate) use delivery_columns;

/// The condition for the oldest deliveries to the receiver and of the tenant of a row of `pair` that are due at `$1`: `$4` of them.
macro_rules! due_in_pair {
    () => {
        "status = 'pending' and tenant = pair.tenant and coalesce(receiver, '') = pair.receiver and due_at <= $1
            order by due_at limit $4"
    };
}
pub(crate) use due_in_pair;

/// The columns of `rows::RemovedSessionRow`.
macro_rules! removed_session_columns {
    () => {
        "x.session_id, x.parent_session_id, x.branch_id, x.position, x.depth, x.message_count, x.history_start, x.removed_at, \
         x.root_hash, x.segment_hash"
    };
}
pub(crate) use removed_session_columns;

/// A common table expression: the session `$2`, kept or removed, and its ancestors; the limit is a condition on the way upwards.
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
