//! What bounds the completion of one request: budgets, and what the run has reserved of limits of
//! spending.

use super::ports::ExchangePorts;
use crate::completion_limit::CompletionLimit;
use crate::model_calls::{ModelChoice, estimated_tokens, least_input_tokens, request_bytes};
use crate::ports::{ModelRequest, SpendError};
use crate::reservation::Claim;
use crate::state::{AgentState, StopSignal};
use tasks::off_thread::by_size_of;
use values::clock::Timestamp;
use values::usage::{Price, Usage};

/// The bounds of a completion.
#[derive(Debug)]
pub(super) struct Bounds<'a> {
    /// The usage of the request until its provider has counted it.
    pub(super) least: Usage,
    claim: Option<Claim<'a>>,
    pub(super) time_limit: Option<Timestamp>,
}

/// Returns the least usage of a request. Skips the estimate if no limit applies.
async fn least_usage(ports: ExchangePorts<'_>, choice: &ModelChoice, request: &ModelRequest) -> Usage {
    if !ports.control.limits_usage() {
        return Usage::NOTHING;
    }
    let tokens = by_size_of(ports.tenant, request_bytes(request), request, least_input_tokens).await;
    Usage {
        input_tokens: tokens,
        total_tokens: tokens,
        cost: choice.price.as_ref().map(|price| price.least_input_cost(tokens)),
        ..Usage::default()
    }
}

/// Claims the worst case of a request from what the run has reserved, if limits of spending count
/// the run.
async fn claim<'a>(
    ports: ExchangePorts<'a>,
    choice: &ModelChoice,
    request: &ModelRequest,
    least: Usage,
) -> Result<Option<Claim<'a>>, SpendError> {
    let run = ports.control.of_run();
    let Some((reservation, price)) = run.reservation().zip(choice.price) else {
        return Ok(None);
    };
    let input_tokens = estimated_tokens(request_bytes(request)).max(least.input_tokens);
    let spent = || run.spent().known_cost();
    reservation
        .claim(spent, price, input_tokens, least, request.max_output_tokens)
        .await
}

impl<'a> Bounds<'a> {
    /// Limits a request to what its run may spend. Fails if it must not be sent.
    pub(super) async fn of(
        ports: ExchangePorts<'a>,
        state: &AgentState,
        choice: &ModelChoice,
        request: &mut ModelRequest,
    ) -> Result<Self, SpendError> {
        let time_limit = ports.control.time_limit(state);
        let least = tokio::select! {
            biased;
            least = least_usage(ports, choice, request) => least,
            signal = ports.control.interrupted(time_limit) => return Err(SpendError::Stopped(signal)),
        };
        if let Some(limit) = ports.control.completion_limit(least, choice.price.as_ref()) {
            if let Some(signal) = limit.refusal(least.input_tokens) {
                return Err(SpendError::Stopped(signal));
            }
            request.limit_output(limit.tokens);
        }
        let claim = tokio::select! {
            biased;
            claim = claim(ports, choice, request, least) => claim?,
            signal = ports.control.interrupted(time_limit) => return Err(SpendError::Stopped(signal)),
        };
        let tight = claim.as_ref().filter(|claim| claim.is_tight);
        if let Some(tokens) = tight.and_then(|claim| claim.output_tokens(least)) {
            request.limit_output(tokens);
        }
        Ok(Self {
            least,
            claim,
            time_limit,
        })
    }

    /// Returns the limit of the completion, with `pending` counted as spent.
    pub(super) fn completion_limit(
        &self,
        ports: ExchangePorts<'_>,
        pending: Usage,
        price: Option<&Price>,
    ) -> Option<CompletionLimit> {
        let claimed = self.claim.as_ref().and_then(|claim| claim.output_tokens(pending));
        let claimed = claimed.map(CompletionLimit::of_claim);
        let limits = [claimed, ports.control.completion_limit(pending, price)];
        limits.into_iter().flatten().min_by_key(|limit| limit.tokens)
    }

    /// Claims more for a completion that has reached the limit of its claim. Fails with the signal
    /// if another limit is reached.
    pub(super) async fn exceed(
        &mut self,
        ports: ExchangePorts<'_>,
        reached: &CompletionLimit,
        signal: StopSignal,
    ) -> Result<(), SpendError> {
        let run = ports.control.of_run();
        match &mut self.claim {
            Some(claim) if reached.is_of_claim() => claim.grow(|| run.spent().known_cost()).await,
            _ => Err(SpendError::Stopped(signal)),
        }
    }
}
