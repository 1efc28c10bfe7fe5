//! `GET /v1/spend` and `GET /v1/usage`: what a tenant may spend, and what its runs have used.

use axum::Json;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use chrono::{Days, NaiveDate};
use chrono_tz::Tz;
use serde::Serialize;
use utoipa::ToSchema;

use super::auth::Call;
use super::codes::ProblemCode;
use super::parameters::{NoParameters, QueryParameters, invalid};
use super::problem::Problem;
use crate::run::standings;
use agent::record::Creator;
use store::runs::{UsageQuery, UsageSum};
use store::spend::SpendStanding;
use values::clock::Timestamp;
use values::limits::{SpendPeriod, midnight};
use values::usage::Cost;

/// The most days of a request.
const MAX_DAYS: usize = 366;
/// The most rows of a response.
const MAX_ROWS: u32 = 10_000;
/// The name of the span of all days.
const WHOLE: &str = "";

/// What the caller may spend.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Spend {
    /// The time zone in which days and months begin.
    time_zone: String,
    /// The limits of the tenant, of its agents and of the caller's API key. Empty if none is set.
    limits: Vec<SpendLimit>,
}

/// A limit of spending, and how much of it is spent. Amounts are US dollars.
#[derive(Debug, Serialize, ToSchema)]
struct SpendLimit {
    /// The runs that it counts: `tenant`, `agent:NAME` or `key:ID`.
    scope: String,
    /// Whether it is the limit of a day or of a month.
    period: SpendPeriod,
    /// The first day of the period.
    first_day: NaiveDate,
    /// The most that may be spent.
    limit: Cost,
    /// What the runs that have ended have cost.
    spent: Cost,
    /// What runs in progress have reserved.
    reserved: Cost,
    /// What is left to reserve.
    left: Cost,
    /// When the period ends.
    #[schema(value_type = chrono::DateTime<chrono::Utc>)]
    resets_at: Timestamp,
}

/// The usage of the runs of some days.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct UsageReport {
    /// The first day.
    from: NaiveDate,
    /// The last day.
    to: NaiveDate,
    /// The time zone of the days.
    time_zone: String,
    /// The sums.
    rows: Vec<UsageRow>,
}

/// The sum of the usage of some runs that have ended.
#[derive(Debug, Serialize, ToSchema)]
struct UsageRow {
    /// The day in which the runs were made; only if days are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    day: Option<String>,
    /// The agent; only if agents are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    /// The model that answered last; only if models are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// The id of the API key, or the issuer and the subject of the token with a blank between them;
    /// only if keys are asked for. Empty for runs without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// The number of runs.
    runs: u64,
    /// The number of runs of whose cost a part is not known.
    cost_unknown_runs: u64,
    /// The known cost, in US dollars.
    cost: Cost,
    /// All tokens that the models have read.
    input_tokens: u64,
    /// All tokens that the models have written.
    output_tokens: u64,
    /// The input tokens that providers read from their caches.
    cache_read_tokens: u64,
    /// The input tokens that providers wrote to their caches.
    cache_write_tokens: u64,
    /// The output tokens that went into reasoning.
    reasoning_tokens: u64,
    /// All tokens.
    total_tokens: u64,
}

/// What has a sum of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString, strum::VariantNames)]
#[strum(serialize_all = "snake_case")]
enum UsageBy {
    Day,
    Agent,
    Model,
    Key,
}

/// The form of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::EnumString)]
#[strum(serialize_all = "snake_case")]
enum ReportFormat {
    Json,
    Csv,
}

/// Shows how much of the limits of spending is spent: those of the tenant, of its agents, and of
/// the caller's API key.
#[utoipa::path(get, path = "/v1/spend", tag = "service", responses(
    (status = 200, description = "The limits", body = Spend),
))]
pub(super) async fn get_spend(call: Call, _: NoParameters) -> Result<Json<Spend>, Problem> {
    let (runs, limits) = (&call.api.runs, call.run_limits());
    let key = call.key_id().map(|key_id| (key_id, &limits));
    let standings = standings(runs, &call.tenant, key).await?;
    Ok(Json(Spend {
        time_zone: runs.limits.of(&call.tenant).time_zone.to_string(),
        limits: standings.into_iter().map(SpendLimit::from).collect(),
    }))
}

/// Sums the usage of the runs that were made in some days, have ended, and are stored. By default
/// shows the days of this month.
#[utoipa::path(get, path = "/v1/usage", tag = "service", params(
    ("from" = Option<NaiveDate>, Query, description = "The first day; by default the first of the month of `to`"),
    ("to" = Option<NaiveDate>, Query, description = "The last day; by default today. At most 366 days"),
    ("by" = Option<String>, Query, pattern = "^(day|agent|model|key)(,(day|agent|model|key))*$", description = "What has sums of its own, with commas between: `day`, `agent`, `model`, `key`. By default `day`"),
    ("format" = Option<String>, Query, pattern = "^(json|csv)$", description = "`json`, the default, or `csv`"),
), responses(
    (status = 200, description = "The sums, at most 10,000", content((UsageReport = "application/json"), (String = "text/csv"))),
), extensions(("x-problems" = json!([ProblemCode::InvalidParameter]))))]
pub(super) async fn get_usage(call: Call, mut query: QueryParameters) -> Result<Response, Problem> {
    let runs = &call.api.runs;
    let zone = runs.limits.of(&call.tenant).time_zone;
    let today = runs.clock.now().with_timezone(&zone).date_naive();
    let to = query.parsed("to")?.unwrap_or(today);
    let from = query.parsed("from")?.unwrap_or_else(|| first_of_month(to));
    let mut by = query.parsed_list::<UsageBy>("by")?;
    if by.is_empty() {
        by.push(UsageBy::Day);
    }
    let format = query.parsed("format")?.unwrap_or(ReportFormat::Json);
    query.finish()?;
    let asked = UsageQuery {
        spans: spans(from, to, zone, by.contains(&UsageBy::Day))?,
        by_agent: by.contains(&UsageBy::Agent),
        by_model: by.contains(&UsageBy::Model),
        by_creator: by.contains(&UsageBy::Key),
        limit: MAX_ROWS + 1,
    };
    let sums = runs.store.usage_sum(&call.tenant, &asked).await?;
    if sums.len() > MAX_ROWS as usize {
        let message = format!(
            "the sums have more than {MAX_ROWS} rows: ask for fewer days, or for less that has sums of its own"
        );
        return Err(invalid("by", message));
    }
    let rows = sums.into_iter().map(|sum| UsageRow::new(sum, &by)).collect();
    match format {
        ReportFormat::Json => Ok(Json(UsageReport {
            from,
            to,
            time_zone: zone.to_string(),
            rows,
        })
        .into_response()),
        ReportFormat::Csv => csv(&rows, &by),
    }
}

fn first_of_month(day: NaiveDate) -> NaiveDate {
    SpendPeriod::Month.first_day(day)
}

/// Returns each day with its beginning and its end, or all days together.
fn spans(
    from: NaiveDate,
    to: NaiveDate,
    zone: Tz,
    by_day: bool,
) -> Result<Vec<(String, Timestamp, Timestamp)>, Problem> {
    let days: Vec<_> = from
        .iter_days()
        .take_while(|day| *day <= to)
        .take(MAX_DAYS + 1)
        .collect();
    if days.is_empty() {
        return Err(invalid("to", "is before `from`"));
    }
    if days.len() > MAX_DAYS {
        return Err(invalid(
            "from",
            format!("is more than {MAX_DAYS} days before the end of `to`"),
        ));
    }
    let after = |day: NaiveDate| day.checked_add_days(Days::new(1)).unwrap_or(NaiveDate::MAX);
    Ok(if by_day {
        let span = |day: NaiveDate| (day.to_string(), midnight(day, zone), midnight(after(day), zone));
        days.into_iter().map(span).collect()
    } else {
        vec![(WHOLE.to_owned(), midnight(from, zone), midnight(after(to), zone))]
    })
}

/// Responds with rows as CSV (RFC 4180), with the names of the columns first.
fn csv(rows: &Vec<UsageRow>, by: &[UsageBy]) -> Result<Response, Problem> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let named = |name: &'static str, by_it| by.contains(&by_it).then_some(name);
    let divided = [
        named("day", UsageBy::Day),
        named("agent", UsageBy::Agent),
        named("model", UsageBy::Model),
        named("key", UsageBy::Key),
    ];
    let names = divided.into_iter().flatten().chain(COLUMNS);
    writer.write_record(names).map_err(Problem::internal)?;
    for row in rows {
        writer.write_record(row.fields()).map_err(Problem::internal)?;
    }
    let text = writer
        .into_inner()
        .map_err(|error| Problem::internal(error.into_error()))?;
    Ok(([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response())
}

/// The columns of CSV after those that divide the sums.
const COLUMNS: [&str; 9] = [
    "runs",
    "cost_unknown_runs",
    "cost",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "total_tokens",
];

impl UsageRow {
    fn new(sum: UsageSum, by: &[UsageBy]) -> Self {
        let UsageSum { usage, .. } = sum;
        let shown = |text: String, by_it| by.contains(&by_it).then_some(text);
        Self {
            day: shown(sum.span, UsageBy::Day),
            agent: shown(sum.agent, UsageBy::Agent),
            model: shown(sum.model, UsageBy::Model),
            key: shown(sum.created_by.map(creator_name).unwrap_or_default(), UsageBy::Key),
            runs: sum.runs,
            cost_unknown_runs: sum.cost_unknown_runs,
            cost: usage.known_cost(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cache_read_tokens,
            cache_write_tokens: usage.cache_write_tokens,
            reasoning_tokens: usage.reasoning_tokens,
            total_tokens: usage.total_tokens,
        }
    }

    fn fields(&self) -> impl Iterator<Item = String> {
        let divided = [&self.day, &self.agent, &self.model, &self.key];
        let counts = [
            self.runs.to_string(),
            self.cost_unknown_runs.to_string(),
            self.cost.dollars().to_string(),
            self.input_tokens.to_string(),
            self.output_tokens.to_string(),
            self.cache_read_tokens.to_string(),
            self.cache_write_tokens.to_string(),
            self.reasoning_tokens.to_string(),
            self.total_tokens.to_string(),
        ];
        divided.into_iter().flatten().cloned().chain(counts)
    }
}

fn creator_name(creator: Creator) -> String {
    match creator {
        Creator::Key(key) => key.key_id.to_string(),
        Creator::Token(token) => format!("{} {}", token.issuer, token.sub),
        Creator::Certificate(certified) => certified.certificate,
    }
}

impl From<SpendStanding> for SpendLimit {
    fn from(standing: SpendStanding) -> Self {
        let left = standing.left();
        let limit = standing.limit;
        Self {
            scope: limit.scope.to_string(),
            period: limit.period,
            first_day: limit.first_day,
            limit: limit.most,
            spent: standing.spent,
            reserved: standing.reserved,
            left,
            resets_at: limit.resets_at,
        }
    }
}
