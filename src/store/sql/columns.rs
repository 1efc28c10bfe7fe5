//! Column lists that several statements share, as literals for `concat!`. The tables go by the aliases `s` and `r`.

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
         r.completed_at, r.schema_version"
    };
}
pub(crate) use run_columns;

/// The condition on a segment `h` that `sql/history.rs` looks for with a row `s` of its search.
macro_rules! segment_condition {
    () => {
        "h.tenant = $1 and h.branch_id = s.branch_id and h.position >= s.position and h.position <= s.last_position \
         and h.first_index < $5 and h.first_index + h.message_count > $4"
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
