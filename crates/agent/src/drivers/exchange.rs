//! One exchange with the agent's models: the hooks around it, the fallbacks, the limits and the
//! events.

use std::error::Error as _;

use futures_util::StreamExt as _;

use super::bounds::Bounds;
use super::deltas::{Deltas, Emitted, emit_rest};
use super::partial::{Arrival, PartialCompletion};
use super::ports::ExchangePorts;
use super::structured::{Formatted, formatted};
use crate::events::{AgentEvent, TracedWork};
use crate::hook_point::HookPoint;
use crate::hooks::{HookContext, HookFailure, HookSubject};
use crate::model_calls::{ModelChoice, content_bytes, estimated_usage, request_bytes};
use crate::ports::{ModelError, ModelErrorClass, ModelEvent, ModelRequest, RefusedPart, SpendError};
use crate::state::{AgentError, AgentState, FinishReason, ModelRequestTrace, ModelResponse, StopSignal};
use values::ids::ModelRequestId;
use values::model_parameters::ToolChoice;
use values::model_ref::ModelRef;
use values::usage::Usage;

/// The end of an exchange: a completion, a cut, or an error that may follow a part of a completion.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The completion, or the part of it that arrived. Its usage includes failed attempts.
    pub(super) response: Option<ModelResponse>,
    /// The usage of failed attempts.
    pub(super) failed_usage: Usage,
    /// The model of the completion; none if nothing arrived.
    pub(super) answered_by: Option<ModelRef>,
    /// The signal that cut it.
    pub(super) signal: Option<StopSignal>,
    /// The error, if it failed.
    pub(super) error: Option<AgentError>,
    /// The hook that failed during the exchange.
    pub(super) hook_failure: Option<HookFailure>,
    /// Whether it failed before any delta was emitted, so that another model may be called.
    pub(super) is_replaceable: bool,
    /// The parts that requests of the step leave out, since their provider refuses them.
    pub(super) left_out: Vec<RefusedPart>,
    /// The attempts of the last request, and when its completion began to arrive.
    pub(super) arrival: Arrival,
    /// The requests that were sent, in order.
    pub(super) requests: Vec<ModelRequestTrace>,
}

/// Calls the models in turn until one succeeds. A later one is called only if no delta was emitted.
///
/// If a provider refuses one part of the request, the same model is called again without this part.
///
/// The requests differ only in the model's name, the tokens that its price allows, and how the
/// response format is enforced. The returned state includes the changes of hooks. Deltas beyond
/// `emitted` are not sent.
pub(super) async fn exchange(
    ports: ExchangePorts<'_>,
    state: AgentState,
    request: ModelRequest,
    emitted: Emitted,
) -> (AgentState, Exchange) {
    let mut state = state;
    let mut spent = Usage::default();
    let (mut left_out, mut requests) = (Vec::new(), Vec::new());
    let mut choices = ports.models.iter();
    let mut choice = ports.models.preferred();
    choices.next();
    loop {
        // The work before and after a call is boxed, so that its memory is free during the call.
        let Formatted { request, final_tool } = fitted(ports, choice, request.clone());
        let at_once = emitted_at_once(ports, final_tool.is_some()).min(emitted);
        let (next, fitted) = match Box::pin(before_request(ports, state, request)).await {
            Ok(ready) => ready,
            Err((state, hook_failure)) => {
                let failed = Exchange::failed_before(hook_failure, spent);
                return (state, Exchange { requests, ..failed });
            }
        };
        let mut ended = ask_one(ports, &next, choice, fitted, at_once).await;
        if let Some(tool) = &final_tool {
            ended.response = ended.response.map(|response| Formatted::unwrapped(tool, response));
        }
        let is_reduced = !ended.left_out.is_empty();
        left_out.append(&mut ended.left_out);
        requests.append(&mut ended.requests);
        let fallback = if is_reduced {
            Some(choice)
        } else {
            choices.next().filter(|_| ended.is_replaceable)
        };
        let (next, mut ended) = Box::pin(after_response(ports, next, ended)).await;
        spent = ended.add_earlier(spent);
        if let Some(fallback) = fallback.filter(|_| ended.hook_failure.is_none()) {
            let Some(signal) = ports.control.usage_limit(Usage::NOTHING) else {
                (state, choice) = (next, fallback);
                continue;
            };
            // The budget ends the step, not the error: a fallback could have followed the error.
            (ended.signal, ended.error) = (Some(signal), None);
        }
        if let Some(response) = &ended.response {
            emit_rest(ports.events, next.step_count() + 1, &response.content, at_once, emitted);
        }
        (ended.left_out, ended.requests) = (left_out, requests);
        return (next, ended);
    }
}

/// Returns the deltas that are emitted at once. Returns `Nothing` if hooks must see the whole
/// completion first. Returns `Reasoning` if the final completion may be a tool call, since text
/// around that call is dropped.
fn emitted_at_once(ports: ExchangePorts<'_>, by_tool: bool) -> Emitted {
    if ports.hooks.holds_back_deltas() {
        Emitted::Nothing
    } else if by_tool {
        Emitted::Reasoning
    } else {
        Emitted::Everything
    }
}

impl Exchange {
    /// Makes an exchange that has ended with this completion.
    pub(super) fn of(response: ModelResponse) -> Self {
        Self {
            response: Some(response),
            failed_usage: Usage::NOTHING,
            answered_by: None,
            signal: None,
            error: None,
            hook_failure: None,
            is_replaceable: false,
            left_out: Vec::new(),
            arrival: Arrival::NOTHING,
            requests: Vec::new(),
        }
    }

    /// Makes the exchange in which a hook failed before the next model was called. Only the usage
    /// of failed attempts remains.
    fn failed_before(hook_failure: HookFailure, spent: Usage) -> Self {
        let unanswered = Self::of(ModelResponse {
            usage: spent,
            ..PartialCompletion::new(0).into_response()
        });
        Self {
            response: unanswered.response.filter(|_| !spent.is_nothing()),
            failed_usage: spent,
            hook_failure: Some(hook_failure),
            ..unanswered
        }
    }

    /// Marks the cost as incomplete if the provider executed tool calls itself, since it bills them
    /// separately from tokens. For a failed attempt or a cut completion, an offer of such tools is
    /// enough: their calls are not counted.
    fn leave_cost_open(&mut self, offers_tools: bool) {
        if let Some(response) = &mut self.response {
            let is_cut = response.finish_reason == FinishReason::Interrupted;
            if !response.provider_tool_calls.is_empty() || (is_cut && offers_tools) {
                response.usage = response.usage.partly_priced();
            }
        }
        if offers_tools {
            self.failed_usage = self.failed_usage.partly_priced();
        }
    }

    /// Adds the usage of earlier models of the step as usage of failed attempts. Returns the total.
    fn add_earlier(&mut self, earlier: Usage) -> Usage {
        self.failed_usage = earlier + self.failed_usage;
        let Some(response) = &mut self.response else {
            return self.failed_usage;
        };
        response.usage = self.failed_usage + response.usage;
        response.usage
    }
}

/// Returns the request for one of the models, before hooks change it.
fn fitted(ports: ExchangePorts<'_>, choice: &ModelChoice, request: ModelRequest) -> Formatted {
    let left = ports.control.completion_limit(Usage::NOTHING, choice.price.as_ref());
    let left = left.map(|limit| limit.tokens);
    let limits = [left, request.max_output_tokens, request.parameters.max_output_tokens];
    let request = ModelRequest {
        model: choice.model_ref.model().to_owned(),
        max_output_tokens: limits.into_iter().flatten().min(),
        ..request
    };
    let by = choice.model.structured_output();
    let (request, by) = ports.models.left_out.applied(&choice.model_ref, request, by);
    formatted(request, by)
}

async fn before_request(
    ports: ExchangePorts<'_>,
    state: AgentState,
    request: ModelRequest,
) -> Result<(AgentState, ModelRequest), (AgentState, HookFailure)> {
    if !ports.hooks.has_hooks_at(HookPoint::BeforeModelRequest) {
        return Ok((state, request));
    }
    let fallback = request.clone();
    let context = HookContext::new(
        HookPoint::BeforeModelRequest,
        state,
        HookSubject::Request(Box::new(request)),
    );
    let (context, failure) = ports.hooks.call(context, || ports.control.now()).await;
    if let Some(failure) = failure {
        return Err((context.state, failure));
    }
    Ok(match context.subject {
        HookSubject::Request(request) => (context.state, *request),
        // The stack lets no hook change the kind of the subject.
        _ => (context.state, fallback),
    })
}

/// Calls the hooks with the completion.
async fn after_response(ports: ExchangePorts<'_>, state: AgentState, ended: Exchange) -> (AgentState, Exchange) {
    let (mut state, mut ended) = (state, ended);
    let has_hooks = ports.hooks.has_hooks_at(HookPoint::AfterModelRequest);
    if let Some(whole) = ended.response.take_if(|_| has_hooks) {
        let context = HookContext::new(
            HookPoint::AfterModelRequest,
            state,
            HookSubject::Response(Box::new(whole)),
        );
        let (context, failure) = ports.hooks.call(context, || ports.control.now()).await;
        state = context.state;
        ended.hook_failure = failure;
        if let HookSubject::Response(mut response) = context.subject {
            if ended.hook_failure.is_some() && ports.hooks.holds_back_deltas() {
                response.withhold();
            }
            ended.response = Some(*response);
        }
    }
    (state, ended)
}

/// Calls one model, and emits an event for the request and one for its end. A request that would
/// use up the budget is not sent.
async fn ask_one(
    ports: ExchangePorts<'_>,
    state: &AgentState,
    choice: &ModelChoice,
    mut request: ModelRequest,
    live: Emitted,
) -> Exchange {
    let bounds = match Bounds::of(ports, state, choice, &mut request).await {
        Ok(bounds) => bounds,
        Err(error) => return unpaid(choice, PartialCompletion::new(0), error),
    };
    let request_id = ModelRequestId::generate(ports.ids);
    request.trace = ports.events.span_of(TracedWork::ModelRequest(request_id));
    let step_number = state.step_count() + 1;
    let began = ports.control.now();
    ports.events.emit(AgentEvent::ModelRequested {
        step_number,
        request_id,
        model: choice.model_ref.clone(),
        message_count: request.messages.len(),
        tool_count: request.tools.len(),
        max_output_tokens: request.max_output_tokens,
    });
    let deltas = Deltas::new(ports.events, step_number, live);
    let offers_tools = !request.tools_of_provider(choice.model_ref.provider()).is_empty();
    let message_count = request.messages.len();
    let chosen = match &request.tool_choice {
        ToolChoice::Tool(name) => Some(name.clone()),
        _ => None,
    };
    let mut ended = stream(ports, choice, request, bounds, deltas).await;
    let is_chosen =
        |part: &RefusedPart| matches!((part, &chosen), (RefusedPart::Tool(name), Some(chosen)) if name == chosen);
    ended
        .left_out
        .retain(|part| !is_chosen(part) && ports.models.left_out.add(&choice.model_ref, part, message_count));
    for part in &ended.left_out {
        tracing::warn!(model = %choice.model_ref, part = %part, "the provider refuses a part of the request, which is left out");
    }
    // The cost that the provider reports includes its tools.
    if choice.price.is_some() {
        ended.leave_cost_open(offers_tools);
    }
    let response = ended.response.as_ref();
    let usage = ended.failed_usage + response.map_or(Usage::NOTHING, |response| response.usage);
    ports.control.spend(usage);
    let (attempts, ended_at) = (ended.arrival.attempts, ports.control.now());
    let retries = std::mem::take(&mut ended.arrival.retries);
    ports.events.emit(AgentEvent::ModelResponded {
        step_number,
        request_id,
        model: choice.model_ref.clone(),
        finish_reason: response.map(|response| response.finish_reason.clone()),
        usage: Box::new(usage),
        error: ended.error.clone().map(Box::new),
        left_out: ended.left_out.iter().map(ToString::to_string).collect(),
        attempts,
        retries,
        duration_ms: (ended_at - began).num_milliseconds().max(0),
    });
    ended.requests.push(ModelRequestTrace {
        model: choice.model_ref.clone(),
        started_at: began,
        first_token_at: ended.arrival.first_token_at,
        ended_at,
        attempts,
        error: ended.error.clone(),
    });
    ended
}

/// Ends a completion that may spend no more.
fn unpaid(choice: &ModelChoice, partial: PartialCompletion, error: SpendError) -> Exchange {
    match error {
        SpendError::Stopped(signal) => cut(choice, partial, signal),
        SpendError::Unavailable(error) => Exchange {
            error: Some(error),
            ..end_partial(choice, partial)
        },
    }
}

/// Reads the completion until it ends or is cut.
async fn stream(
    ports: ExchangePorts<'_>,
    choice: &ModelChoice,
    request: ModelRequest,
    mut bounds: Bounds<'_>,
    mut deltas: Deltas<'_>,
) -> Exchange {
    let control = ports.control;
    let price = choice.price.as_ref();
    let least = bounds.least;
    let mut pending = least;
    let mut limit = bounds.completion_limit(ports, pending, price);
    let asked = request_bytes(&request);
    let mut events = choice.model.stream(request);
    let interrupted = control.interrupted(bounds.time_limit);
    tokio::pin!(interrupted);
    let mut partial = PartialCompletion::new(asked);
    let mut was_emitted = false;
    loop {
        let event = tokio::select! {
            biased;
            signal = &mut interrupted => return cut(choice, partial, signal),
            event = events.next() => event,
        };
        let event = match event {
            Some(Ok(ModelEvent::Completed(response))) => {
                return complete(choice, *response, asked, &partial);
            }
            Some(Ok(event)) => event,
            Some(Err(error)) => return fail(choice, partial, &error, was_emitted),
            None => return fail(choice, partial, &silent_end(), was_emitted),
        };
        // A stream that is always ready would starve timers, readers and other runs on the thread.
        tokio::task::coop::consume_budget().await;
        // A count over the limit cuts the completion at its next event. After the last count only
        // the end follows, which spends nothing more.
        while let Some(over) = limit.as_ref().filter(|limit| partial.output_tokens() > limit.tokens) {
            if let Err(error) = bounds.exceed(ports, over, over.overrun()).await {
                return unpaid(choice, partial, error);
            }
            limit = bounds.completion_limit(ports, pending, price);
        }
        partial.push(&event, || control.now());
        let asks_again = matches!(event, ModelEvent::AttemptFailed { .. });
        if asks_again || matches!(event, ModelEvent::Usage(_)) {
            let asked = partial.input_usage().map_or(least, |usage| usage.priced(price));
            pending = partial.failed_usage().priced(price) + asked;
            limit = bounds.completion_limit(ports, pending, price);
        }
        was_emitted |= deltas.emit(event);
        let Some(reached) = &limit else { continue };
        let refusal = reached.refusal(least.input_tokens).filter(|_| asks_again);
        let overrun = || reached.is_overrun(partial.least_tokens()).then(|| reached.overrun());
        if let Some(signal) = refusal.or_else(overrun) {
            if let Err(error) = bounds.exceed(ports, reached, signal).await {
                return unpaid(choice, partial, error);
            }
            limit = bounds.completion_limit(ports, pending, price);
        }
    }
}

/// Ends a whole completion of a request of `asked` bytes. Estimates the usage if none is reported.
fn complete(choice: &ModelChoice, response: ModelResponse, asked: u64, partial: &PartialCompletion) -> Exchange {
    let usage = if response.usage.total_tokens == 0 {
        let estimated = estimated_usage(asked, content_bytes(&response.content));
        let cost = response.usage.cost;
        Usage { cost, ..estimated }
    } else {
        response.usage
    };
    Exchange {
        arrival: partial.arrival(),
        ..end(choice, ModelResponse { usage, ..response }, partial.failed_usage())
    }
}

fn end(choice: &ModelChoice, response: ModelResponse, failed_usage: Usage) -> Exchange {
    let usage = response.usage.priced(choice.price.as_ref());
    Exchange {
        failed_usage: failed_usage.priced(choice.price.as_ref()),
        answered_by: Some(choice.model_ref.clone()),
        ..Exchange::of(ModelResponse { usage, ..response })
    }
}

fn cut(choice: &ModelChoice, partial: PartialCompletion, signal: StopSignal) -> Exchange {
    Exchange {
        signal: Some(signal),
        ..end_partial(choice, partial)
    }
}

/// Logs the failure for operators, and ends the completion. The provider's own message may repeat
/// the prompt, so only the caller gets it.
fn fail(choice: &ModelChoice, partial: PartialCompletion, error: &ModelError, was_emitted: bool) -> Exchange {
    tracing::warn!(
        model = %choice.model_ref,
        url = error.address.as_ref().map(|address| address.url.as_str()),
        class = error.class.code(),
        status = error.status,
        cause = causes(error),
        "model call failed"
    );
    Exchange {
        error: Some(error.to_agent_error(&choice.model_ref)),
        is_replaceable: !was_emitted,
        left_out: error
            .refused
            .as_deref()
            .cloned()
            .into_iter()
            .filter(|_| !was_emitted)
            .collect(),
        ..end_partial(choice, partial)
    }
}

/// Ends a completion that may be empty.
fn end_partial(choice: &ModelChoice, partial: PartialCompletion) -> Exchange {
    let arrival = partial.arrival();
    let failed_usage = partial.failed_usage();
    let ended = end(choice, partial.into_response(), failed_usage);
    Exchange {
        answered_by: ended.answered_by.filter(|_| arrival.first_token_at.is_some()),
        arrival,
        ..ended
    }
}

/// Makes the error of a stream that ends without a completion, which breaks the contract of the
/// port.
fn silent_end() -> ModelError {
    ModelError::new(ModelErrorClass::Truncated, "the model's response ended without an end")
}

/// Returns the causes of the error, outermost first.
fn causes(error: &ModelError) -> Option<String> {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    (!causes.is_empty()).then(|| causes.join(": "))
}
