//! Sums of the usage of runs. An id begins with the time at which it was made, so the runs of a
//! span are a range of the primary key.

use super::statement::Statement;
use crate::rows::values;
use crate::runs::UsageQuery;
use values::ids::RunId;
use values::tenant::TenantId;

/// Sums the usage of the runs that have ended.
pub(super) fn usage_statement<'v>(tenant: &'v TenantId, query: &'v UsageQuery) -> Statement<'v> {
    let mut select = Statement::with(
        "sum usage",
        "with spans (span, first, next) as (values ",
        values![tenant],
    );
    for (index, (name, begin, end)) in query.spans.iter().enumerate() {
        select.push_bind(if index == 0 { "(" } else { "), (" }, name);
        select.push_bind(", ", RunId::first_at(*begin));
        select.push_bind(", ", RunId::first_at(*end));
    }
    select.push(")) select span, ");
    select.push(if query.by_agent { "agent" } else { "''" });
    select.push(" as agent, ");
    select.push(if query.by_model {
        "coalesce(answered_by, model)"
    } else {
        "''"
    });
    select.push(" as model, ");
    select.push(if query.by_creator {
        "coalesce(created_by, '')"
    } else {
        "''"
    });
    select.push(SUMS);
    select.push_bind(" limit ", query.limit);
    select
}

const SUMS: &str = " as created_by, count(*) as run_count, count(*) - count(cost) as cost_unknown_runs,
        cast(sum(input_tokens) as bigint) as input_tokens, cast(sum(output_tokens) as bigint) as output_tokens,
        cast(sum(cache_read_tokens) as bigint) as cache_read_tokens,
        cast(sum(cache_write_tokens) as bigint) as cache_write_tokens,
        cast(sum(reasoning_tokens) as bigint) as reasoning_tokens, cast(sum(total_tokens) as bigint) as total_tokens,
        sum(coalesce(cost, cost_known_part, 0.0)) as cost
    from spans join runs on tenant = $1 and run_id >= first and run_id < next
    where completed_at is not null
    group by 1, 2, 3, 4 order by 1, 2, 3, 4";
