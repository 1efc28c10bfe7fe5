//! Limits of spending: which limits count a run, and its reservation in the store.
//!
//! A light run reserves before it begins, so that its caller gets a refusal if nothing is left. A
//! queued run is only checked when it is accepted, and reserves with its first request to a model:
//! nothing is reserved for a run that waits.

mod upkeep;

pub(super) use self::upkeep::keep_reservations;

use std::sync::Arc;
use std::time::Duration;

use backon::Retryable as _;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

use super::context::{RunContext, backoff};
use super::refusal::{Refusal, limit_reached};
use agent::ports::{SpendError, SpendSource};
use agent::record::{Creator, RunSummary};
use agent::state::{AgentError, ErrorKind, StopReason, StopSignal};
use agent::{Reservation, RunErrorCode};
use store::StoreError;
use store::spend::{Reserved, SpendRequest, SpendStanding};
use values::ids::{ApiKeyId, RunId};
use values::limits::{RunLimits, SpendLimit, SpendScope};
use values::tenant::TenantId;
use values::usage::Cost;

/// How long a reservation lasts unless it is renewed: its process may be gone.
const LIFETIME: Duration = Duration::from_mins(5);
/// How long a reservation is retried while the store is unavailable.
const PATIENCE: Duration = Duration::from_secs(30);
/// Names the limits as the source of stop signals.
const SOURCE: &str = "spend_limit";

/// Reserves for one run in the store.
#[derive(Debug)]
struct RunSpending {
    ctx: Arc<RunContext>,
    tenant: TenantId,
    run_id: RunId,
    /// At least one.
    limits: Vec<SpendLimit>,
    /// The most that the run may cost by its own budget.
    most: Cost,
}

/// What a run asks of limits of spending.
#[derive(Debug, Clone, Copy)]
pub(super) struct SpendTerms<'a> {
    pub(super) tenant: &'a TenantId,
    /// The limits of the caller's API key.
    pub(super) key: &'a RunLimits,
    /// The least that its first request costs.
    pub(super) least: Cost,
    /// The most that it may cost by its own budget.
    pub(super) most: Option<Cost>,
}

/// Reserves for a light run that is about to begin. Returns `None` if no limit counts it.
pub(super) async fn begin(
    ctx: &Arc<RunContext>,
    terms: SpendTerms<'_>,
    summary: &RunSummary,
) -> Result<Option<Arc<Reservation>>, Refusal> {
    let Some(spending) = RunSpending::of(ctx, terms, summary) else {
        return Ok(None);
    };
    match spending.take(terms.least, terms.least).await? {
        Reserved::Granted(total) => Ok(Some(Arc::new(Reservation::new(Arc::new(spending), total)))),
        Reserved::Refused(standing) => Err(Refusal::SpendLimitReached(Box::new(standing))),
    }
}

/// Returns the reservation of a queued run, which reserves with its first request.
pub(super) fn of_queued(
    ctx: &Arc<RunContext>,
    terms: SpendTerms<'_>,
    summary: &RunSummary,
) -> Option<Arc<Reservation>> {
    let spending = RunSpending::of(ctx, terms, summary)?;
    Some(Arc::new(Reservation::new(Arc::new(spending), Cost::ZERO)))
}

/// Refuses a run for which too little of a limit is left.
pub(super) async fn check(ctx: &RunContext, terms: SpendTerms<'_>, summary: &RunSummary) -> Result<(), Refusal> {
    let limits = limits_of(ctx, terms, summary);
    if limits.is_empty() {
        return Ok(());
    }
    let least = terms.least.max(Cost::from_microdollars(1));
    let standings = ctx.store.spend_list(terms.tenant, limits).await?;
    let reached = standings.into_iter().find(|standing| standing.left() < least);
    reached.map_or(Ok(()), |standing| Err(Refusal::SpendLimitReached(Box::new(standing))))
}

/// Returns the limits that count a run: those of its tenant, its agent and its API key.
fn limits_of(ctx: &RunContext, terms: SpendTerms<'_>, summary: &RunSummary) -> Vec<SpendLimit> {
    let creator = match summary.created_by {
        Some(Creator::Key(ref key)) => Some(key.key_id),
        _ => None,
    };
    let limits = ctx.limits.of(terms.tenant);
    let agent = limits.agent_spend.get(&summary.agent);
    let key = creator.map(|key_id| (SpendScope::Key(key_id), &terms.key.spend));
    let scopes = [
        Some((SpendScope::Tenant, &limits.runs.spend)),
        agent.map(|limits| (SpendScope::Agent(summary.agent.clone()), limits)),
        key,
    ];
    let (time, zone) = (summary.created_at, limits.time_zone);
    let scopes = scopes.into_iter().flatten();
    scopes
        .flat_map(|(scope, limits)| limits.at(time, zone, &scope).collect::<Vec<_>>())
        .collect()
}

/// Reads how much is spent of the present limits of a tenant, of its agents, and of an API key.
pub async fn standings(
    ctx: &RunContext,
    tenant: &TenantId,
    key: Option<(ApiKeyId, &RunLimits)>,
) -> Result<Vec<SpendStanding>, StoreError> {
    let limits = ctx.limits.of(tenant);
    let (now, zone) = (ctx.clock.now(), limits.time_zone);
    let mut present: Vec<_> = limits.runs.spend.at(now, zone, &SpendScope::Tenant).collect();
    for (name, agent) in &limits.agent_spend {
        present.extend(agent.at(now, zone, &SpendScope::Agent(name.clone())));
    }
    if let Some((key_id, key)) = key {
        present.extend(key.spend.at(now, zone, &SpendScope::Key(key_id)));
    }
    ctx.store.spend_list(tenant, present).await
}

impl RunSpending {
    fn of(ctx: &Arc<RunContext>, terms: SpendTerms<'_>, summary: &RunSummary) -> Option<Self> {
        let limits = limits_of(ctx, terms, summary);
        (!limits.is_empty()).then(|| Self {
            ctx: Arc::clone(ctx),
            tenant: terms.tenant.clone(),
            run_id: summary.run_id,
            limits,
            most: terms.most.unwrap_or(Cost::MAX),
        })
    }

    async fn take(&self, least: Cost, wanted: Cost) -> Result<Reserved, StoreError> {
        let ask = async || {
            let request = SpendRequest {
                tenant: self.tenant.clone(),
                run_id: self.run_id,
                limits: self.limits.clone(),
                least,
                wanted,
                most: self.most.max(least),
                expires_at: self.ctx.process.leases.now() + LIFETIME,
            };
            self.ctx.store.spend_reserve(&request).await
        };
        ask.retry(backoff(PATIENCE)).when(StoreError::is_transient).await
    }
}

impl SpendSource for RunSpending {
    fn reserve(&self, least: Cost, wanted: Cost) -> BoxFuture<'_, Result<Cost, SpendError>> {
        let reserving = self.take(least, wanted).map(|reserved| match reserved {
            Ok(Reserved::Granted(total)) => Ok(total),
            Ok(Reserved::Refused(standing)) => Err(SpendError::Stopped(signal(&standing))),
            Err(error) => {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "nothing can be reserved for a run"
                );
                Err(SpendError::Unavailable(AgentError {
                    kind: ErrorKind::Unknown,
                    code: RunErrorCode::StoreUnavailable.as_str().to_owned(),
                    message: "the limits of spending can't be read".to_owned(),
                    source_name: None,
                }))
            }
        });
        reserving.boxed()
    }
}

/// Returns the signal of a limit of which too little is left.
fn signal(standing: &SpendStanding) -> StopSignal {
    let limit = &standing.limit;
    StopSignal::new(StopReason::SpendLimitReached, SOURCE, limit_reached(standing))
        .with_figure("scope", limit.scope.to_string())
        .with_figure("period", limit.period_name())
        .with_figure("limit", limit.most.dollars())
        .with_figure("resets_at", limit.resets_at.to_rfc3339())
        .binding()
}
