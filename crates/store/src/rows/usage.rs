//! Sums of the columns of `runs`.

use super::{RowName, row};
use crate::error::StoreError;
use crate::runs::UsageSum;
use values::usage::{Cost, Usage};

row! {
    /// The sum of the usage of some runs.
    #[derive(Debug)]
    pub(crate) struct UsageRow {
        span: String,
        agent: String,
        model: String,
        created_by: String,
        run_count: i64,
        cost_unknown_runs: i64,
        input_tokens: i64,
        output_tokens: i64,
        cache_read_tokens: i64,
        cache_write_tokens: i64,
        reasoning_tokens: i64,
        total_tokens: i64,
        cost: f64,
    }
}

impl TryFrom<UsageRow> for UsageSum {
    type Error = StoreError;

    fn try_from(row: UsageRow) -> Result<Self, StoreError> {
        let name = RowName::new("runs", &row.span);
        let created_by = Some(&row.created_by).filter(|creator| !creator.is_empty());
        Ok(Self {
            created_by: created_by.map(|creator| name.json("created_by", creator)).transpose()?,
            runs: name.count("run_count", row.run_count)?,
            cost_unknown_runs: name.count("cost_unknown_runs", row.cost_unknown_runs)?,
            usage: Usage {
                input_tokens: name.count("input_tokens", row.input_tokens)?,
                output_tokens: name.count("output_tokens", row.output_tokens)?,
                cache_read_tokens: name.count("cache_read_tokens", row.cache_read_tokens)?,
                cache_write_tokens: name.count("cache_write_tokens", row.cache_write_tokens)?,
                reasoning_tokens: name.count("reasoning_tokens", row.reasoning_tokens)?,
                total_tokens: name.count("total_tokens", row.total_tokens)?,
                cost: Cost::from_dollars(row.cost),
                cost_known_part: None,
            },
            span: row.span,
            agent: row.agent,
            model: row.model,
        })
    }
}
