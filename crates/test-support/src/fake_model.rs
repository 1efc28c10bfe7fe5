//! A model that plays the script of a test and retains its requests.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::ports::{Model, ModelError, ModelErrorClass, ModelEvent, ModelRequest, ModelStream, StructuredOutput};
use agent::state::{FinishReason, ModelResponse};
use futures_util::{StreamExt as _, stream};
use values::message::{ContentPart, ToolCall};
use values::usage::{Cost, Usage};

use crate::provider_rules::assert_provider_valid;

/// The next event of a completion.
#[derive(Debug, Clone)]
pub enum Beat {
    Event(ModelEvent),
    Wait(Duration),
    Fail(ModelErrorClass, &'static str),
    Error(ModelError),
    Hang,
}

/// Gives one scripted completion per request, and checks each request.
#[derive(Debug)]
pub struct FakeModel {
    answers: Mutex<VecDeque<Vec<Beat>>>,
    requests: Mutex<Vec<ModelRequest>>,
    structured_output: StructuredOutput,
}

impl FakeModel {
    pub fn new(answers: impl IntoIterator<Item = Vec<Beat>>) -> Arc<Self> {
        Self::structured_by(StructuredOutput::Native, answers)
    }

    /// Makes a model that is asked for structured output in this way.
    pub fn structured_by(by: StructuredOutput, answers: impl IntoIterator<Item = Vec<Beat>>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            requests: Mutex::default(),
            structured_output: by,
        })
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().unwrap().clone()
    }
}

impl Model for FakeModel {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        assert_provider_valid(&request);
        self.requests.lock().unwrap().push(request);
        let beats = self.answers.lock().unwrap().pop_front().expect("an answer is scripted");
        let events = stream::iter(beats).filter_map(async |beat| match beat {
            Beat::Event(event) => Some(Ok(event)),
            Beat::Fail(class, message) => Some(Err(ModelError::new(class, message))),
            Beat::Error(error) => Some(Err(error)),
            Beat::Hang => std::future::pending().await,
            Beat::Wait(duration) => {
                tokio::time::sleep(duration).await;
                None
            }
        });
        events.boxed()
    }

    fn structured_output(&self) -> StructuredOutput {
        self.structured_output
    }
}

/// A usage of input and output tokens.
pub fn usage(input_tokens: u64, output_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens + output_tokens,
        cost_known_part: Some(Cost::ZERO),
        ..Usage::default()
    }
}

/// A piece of text.
pub fn text(text: &str) -> Beat {
    Beat::Event(ModelEvent::TextDelta { text: text.to_owned() })
}

/// The end of a completion.
pub fn completed(content: Vec<ContentPart>, finish_reason: FinishReason, usage: Usage) -> Beat {
    Beat::Event(ModelEvent::Completed(Box::new(ModelResponse {
        content,
        provider_fields: None,
        finish_reason,
        usage,
        model: None,
        provider_tool_calls: std::collections::BTreeMap::new(),
        response_id: None,
    })))
}

/// The same completion, for which the provider counts so much.
pub fn counted(beats: Vec<Beat>, usage: Usage) -> Vec<Beat> {
    let count = |beat| match beat {
        Beat::Event(ModelEvent::Completed(response)) => completed(response.content, response.finish_reason, usage),
        other => other,
    };
    beats.into_iter().map(count).collect()
}

/// A final completion of 10 input and 5 output tokens.
pub fn says(words: &str) -> Vec<Beat> {
    let content = vec![ContentPart::text(words)];
    vec![text(words), completed(content, FinishReason::Stop, usage(10, 5))]
}

/// A call of a tool.
pub fn tool_call(id: &str, name: &str, arguments: &str) -> ToolCall {
    ToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
        signature: None,
    }
}

/// A completion of 10 input and 5 output tokens that calls tools: the id, the name and the
/// arguments of each.
pub fn asks_for(calls: &[(&str, &str, &str)]) -> Vec<Beat> {
    let mut beats = Vec::new();
    let mut content = Vec::new();
    for (index, (id, name, arguments)) in calls.iter().enumerate() {
        beats.push(Beat::Event(ModelEvent::ToolCallStarted {
            index,
            id: (*id).to_owned(),
            name: (*name).to_owned(),
        }));
        beats.push(Beat::Event(ModelEvent::ToolCallDelta {
            index,
            arguments: (*arguments).to_owned(),
        }));
        content.push(ContentPart::ToolCall(tool_call(id, name, arguments)));
    }
    beats.push(completed(content, FinishReason::ToolCalls, usage(10, 5)));
    beats
}
