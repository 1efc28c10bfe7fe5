//! The driver for models that ask for tools by their provider's own tool calls.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;

use super::Driver;
use super::estimate::{content_bytes, estimated_usage, request_bytes};
use super::partial::PartialAnswer;
use crate::agent::compilers::Compiler;
use crate::agent::control::ExecutionControl;
use crate::agent::events::{AgentEvent, EventSink};
use crate::agent::ports::{Model, ModelError, ModelErrorClass, ModelEvent, ModelRequest, ToolContext, ToolExecutor};
use crate::agent::prompt::render_prompt;
use crate::agent::state::{
    AgentError, AgentState, AgentStep, ErrorKind, ErrorList, ModelResponse, StopReason, StopSignal,
};
use crate::clock::Timestamp;
use crate::ids::{IdSource, MessageId, StepId};
use crate::json::Value;
use crate::message::{ContentPart, Message, Role, ToolCall};
use crate::model_ref::ModelRef;
use crate::usage::Usage;

/// What a driver works with.
#[derive(Debug, Clone)]
pub struct DriverPorts {
    /// Answers.
    pub model: Arc<dyn Model>,
    /// The model's name.
    pub model_ref: ModelRef,
    /// Executes calls.
    pub tools: Arc<dyn ToolExecutor>,
    /// Chooses the messages of requests.
    pub compiler: Arc<dyn Compiler>,
    /// Bounds the execution.
    pub control: Arc<ExecutionControl>,
    /// The environment's variables.
    pub variables: Arc<BTreeMap<String, Value>>,
    /// Makes ids.
    pub ids: Arc<dyn IdSource>,
    /// Hears of everything.
    pub events: Arc<dyn EventSink>,
}

/// Asks the model once, then executes the tools that it asks for.
#[derive(Debug)]
pub struct ToolCallingDriver {
    ports: DriverPorts,
}

/// How a model call ended: with an answer, or cut, or with an error after what had arrived.
struct Answer {
    response: Option<ModelResponse>,
    signal: Option<StopSignal>,
    error: Option<AgentError>,
}

impl ToolCallingDriver {
    /// Makes a driver.
    pub fn new(ports: DriverPorts) -> Self {
        Self { ports }
    }

    async fn make_step(&self, state: AgentState, step_id: StepId) -> AgentState {
        let Some(execution_id) = state.execution().map(|execution| execution.execution_id) else {
            return state;
        };
        let step_number = state.step_count() + 1;
        let time_limit = self.ports.control.time_limit(&state);
        let mut step = AgentStep::new(step_id, self.ports.compiler.compile(&state));
        let answer = match self.request(&state, &step) {
            Ok(request) => self.ask(&state, request, step_number, time_limit).await,
            Err(error) => Answer {
                response: None,
                signal: None,
                error: Some(error),
            },
        };
        let signal = answer.signal.or_else(|| answer.error.as_ref().map(forbid));
        step.errors = answer.error.into_iter().collect::<ErrorList>();
        if let Some(response) = answer.response {
            step.output_messages.extend(self.assistant_message(&response));
            step.response = Some(response);
        }
        let calls: Vec<ToolCall> = step.tool_calls().cloned().collect();
        if !calls.is_empty() {
            let context = ToolContext {
                execution_id,
                step_number,
                variables: Arc::clone(&self.ports.variables),
                metadata: state.metadata().clone(),
                deadline: time_limit,
                cancellation: self.ports.control.cancellation.clone(),
            };
            step.tool_executions = self.ports.tools.execute(calls, context, &*self.ports.events).await;
            step.output_messages.push(self.tool_message(&step));
        }
        let now = self.ports.control.clock.now();
        let state = state.with_current_step(step, now);
        match signal {
            Some(signal) => state.with_stop_signal(signal, now),
            None => state,
        }
    }

    fn request(&self, state: &AgentState, step: &AgentStep) -> Result<ModelRequest, AgentError> {
        let context = state.context();
        let system =
            render_prompt(&context.system_prompt, &self.ports.variables, &context.metadata).map_err(|error| {
                AgentError {
                    kind: ErrorKind::Validation,
                    code: "prompt_not_rendered".to_owned(),
                    message: error.to_string(),
                    source_name: None,
                }
            })?;
        Ok(ModelRequest {
            model: self.ports.model_ref.model().to_owned(),
            system: system.into(),
            messages: Arc::clone(&step.input_messages),
            tools: self.ports.tools.specs(),
            response_format: context.response_format.clone(),
            max_output_tokens: self.ports.control.max_output_tokens(&state.usage()),
        })
    }

    async fn ask(
        &self,
        state: &AgentState,
        request: ModelRequest,
        step_number: usize,
        time_limit: Option<Timestamp>,
    ) -> Answer {
        let control = &self.ports.control;
        let max_output_tokens = request.max_output_tokens;
        let asked = request_bytes(&request);
        let spent = state.usage();
        let mut events = self.ports.model.stream(request);
        let interrupted = control.interrupted(time_limit);
        tokio::pin!(interrupted);
        let mut partial = PartialAnswer::new(asked);
        let mut call_ids = BTreeMap::new();
        loop {
            let event = tokio::select! {
                biased;
                signal = &mut interrupted => return self.cut(partial, signal),
                event = events.next() => event,
            };
            let event = match event {
                Some(Ok(ModelEvent::Completed(response))) => return self.complete(*response, asked),
                Some(Ok(event)) => event,
                Some(Err(error)) => return self.fail(partial, &error),
                None => return self.fail(partial, &silent_end()),
            };
            // A stream that is always ready would keep its thread from timers, readers and other runs.
            tokio::task::coop::consume_budget().await;
            partial.push(&event);
            self.tell(step_number, event, &mut call_ids);
            if ExecutionControl::is_overrun(max_output_tokens, partial.bytes()) {
                return self.cut(partial, control.overrun());
            }
            let used = spent + partial.usage().priced(control.price.as_ref());
            if let Some(signal) = control
                .usage_limit(&used)
                .filter(|_| partial.usage().output_tokens > max_output_tokens.unwrap_or(u64::MAX))
            {
                return self.cut(partial, signal);
            }
        }
    }

    /// Ends the answer to a request of so many bytes. Servers that count nothing are counted for.
    fn complete(&self, response: ModelResponse, asked: u64) -> Answer {
        let usage = if response.usage.total_tokens == 0 {
            let estimated = estimated_usage(asked, content_bytes(&response.content));
            let cost = response.usage.cost;
            Usage { cost, ..estimated }
        } else {
            response.usage
        };
        self.end(ModelResponse { usage, ..response })
    }

    fn end(&self, response: ModelResponse) -> Answer {
        let usage = response.usage.priced(self.ports.control.price.as_ref());
        Answer {
            response: Some(ModelResponse { usage, ..response }),
            signal: None,
            error: None,
        }
    }

    fn cut(&self, partial: PartialAnswer, signal: StopSignal) -> Answer {
        Answer {
            signal: Some(signal),
            ..self.end(partial.into_response())
        }
    }

    /// Logs what only operators may read of the failure, and ends the answer. The provider's own words may repeat the prompt, so
    /// they are left to the caller.
    fn fail(&self, partial: PartialAnswer, error: &ModelError) -> Answer {
        tracing::warn!(
            model = %self.ports.model_ref,
            class = error.class.code(),
            status = error.status,
            cause = causes(error),
            "model call failed"
        );
        Answer {
            error: Some(error.to_agent_error(&self.ports.model_ref)),
            ..self.end(partial.into_response())
        }
    }

    fn tell(&self, step_number: usize, event: ModelEvent, call_ids: &mut BTreeMap<usize, String>) {
        let event = match event {
            ModelEvent::TextDelta { text } => AgentEvent::MessageDelta {
                step_number,
                text,
                refusal: false,
            },
            ModelEvent::RefusalDelta { text } => AgentEvent::MessageDelta {
                step_number,
                text,
                refusal: true,
            },
            ModelEvent::ReasoningDelta { text } => AgentEvent::ReasoningDelta { step_number, text },
            ModelEvent::ToolCallStarted { index, id, name } => {
                call_ids.insert(index, id.clone());
                AgentEvent::ToolCallStarted {
                    step_number,
                    index,
                    call_id: id,
                    name,
                }
            }
            ModelEvent::ToolCallDelta { index, arguments } => {
                let call_id = call_ids.get(&index).cloned().unwrap_or_default();
                AgentEvent::ToolCallDelta {
                    step_number,
                    index,
                    call_id,
                    arguments,
                }
            }
            ModelEvent::Usage(_) | ModelEvent::Completed(_) => return,
        };
        self.ports.events.emit(event);
    }

    /// An answer without content makes no message: providers refuse empty ones.
    fn assistant_message(&self, response: &ModelResponse) -> Option<Arc<Message>> {
        if response.content.is_empty() && response.provider_fields.is_none() {
            return None;
        }
        let message = self.message(Role::Assistant, response.content.clone());
        Some(Arc::new(Message {
            provider_fields: response.provider_fields.clone(),
            ..message
        }))
    }

    fn tool_message(&self, step: &AgentStep) -> Arc<Message> {
        let results = step
            .tool_executions
            .iter()
            .map(|execution| ContentPart::ToolResult(execution.to_result()));
        Arc::new(self.message(Role::Tool, results.collect()))
    }

    fn message(&self, role: Role, content: Vec<ContentPart>) -> Message {
        Message::new(
            MessageId::generate(&*self.ports.ids),
            role,
            content,
            self.ports.control.clock.now(),
        )
    }
}

impl Driver for ToolCallingDriver {
    fn step(&self, state: AgentState, step_id: StepId) -> BoxFuture<'_, AgentState> {
        Box::pin(self.make_step(state, step_id))
    }
}

fn forbid(error: &AgentError) -> StopSignal {
    StopSignal::new(
        StopReason::ErrorForbade,
        error.source_name.clone().unwrap_or_else(|| "driver".to_owned()),
        error.message.clone(),
    )
}

/// A model that ends its stream without an answer breaks its port's contract.
fn silent_end() -> ModelError {
    ModelError::new(ModelErrorClass::Truncated, "the model's answer ended without an end")
}

/// Returns what is behind the error, outermost first.
fn causes(error: &ModelError) -> Option<String> {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    let causes: Vec<String> = causes.map(ToString::to_string).collect();
    (!causes.is_empty()).then(|| causes.join(": "))
}
