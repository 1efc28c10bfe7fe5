//! A model request of a long conversation: to choose, measure and encode its messages, the first
//! time and in the turn after that.

use std::sync::Arc;

use agent::compilers::{CompilerConfig, Traces};
use agent::model_calls::request_bytes;
use agent::ports::ModelRequest;
use agent::state::{AgentContext, AgentState, MessageStore};
use criterion::{Bencher, Criterion};
use models::{ProviderKind, ProviderSettings};
use values::clock::{Clock as _, SystemClock};
use values::ids::{AgentId, ExecutionId, StepId, UuidV7Source};
use values::message::{Message, MessageTags};
use values::model_parameters::ToolChoice;
use values::model_ref::ResponseFormat;
use values::session::History;

use crate::fixtures::messages;

const DEPTHS: [usize; 2] = [200, 10_000];

pub(crate) fn benches(criterion: &mut Criterion) {
    for depth in DEPTHS {
        benches_at(criterion, depth);
    }
}

fn benches_at(criterion: &mut Criterion, depth: usize) {
    let all: Vec<_> = messages(2 * depth + 2).iter().enumerate().map(tagged).collect();
    let (known, new) = all.split_at(2 * depth);
    let mut group = criterion.benchmark_group(format!("request at depth {depth}"));
    let mut bench = |protocol: &str, encode: &dyn Fn(&ModelRequest) -> Vec<u8>| {
        let first: History = known.iter().cloned().collect();
        let (prefix, _) = request(first.clone(), encode);
        let next = prefix.with_messages(new.iter().cloned());
        let run = |history: History| move |bencher: &mut Bencher<'_>| bencher.iter(|| request(history.clone(), encode));
        group.bench_function(format!("{protocol}: first"), run(first));
        group.bench_function(format!("{protocol}: next turn"), run(next));
    };
    for (protocol, kind) in [
        ("responses", ProviderKind::OpenAiResponses),
        ("anthropic", ProviderKind::Anthropic),
    ] {
        let wire = models::wire(&ProviderSettings::new("p", kind)).unwrap().unwrap();
        bench(protocol, &|request| wire.encode(request, true));
    }
    group.finish();
}

/// Returns the message, and a final response as one of a step.
fn tagged((index, message): (usize, &Arc<Message>)) -> Arc<Message> {
    let step_id = (index % 2 == 1).then(|| StepId::generate(&UuidV7Source));
    let tags = MessageTags {
        step_id,
        ..MessageTags::default()
    };
    Arc::new((**message).clone().with_tags(tags))
}

/// Makes the next request. Returns the history with what was retained, and the body.
fn request(history: History, encode: &dyn Fn(&ModelRequest) -> Vec<u8>) -> (History, Vec<u8>) {
    let now = SystemClock.now();
    let context = AgentContext {
        store: MessageStore::new(history),
        ..AgentContext::default()
    };
    let state = AgentState::new(AgentId::generate(&UuidV7Source), now).restored(now, now, 1, context);
    let state = state.start_execution(ExecutionId::generate(&UuidV7Source), now);
    let request = ModelRequest {
        model: "m".to_owned(),
        system: "You answer in a few words.".into(),
        messages: state.messages(&*CompilerConfig::default().compiler(Traces::default())),
        tools: [].into(),
        provider_tools: Arc::default(),
        tool_choice: ToolChoice::Auto,
        response_format: ResponseFormat::Text,
        max_output_tokens: None,
        parameters: Arc::default(),
        trace: None,
    };
    request_bytes(&request);
    let body = encode(&request);
    let history = state.store().history().clone();
    let prefix = request.messages.prefix().cloned();
    (
        prefix.map_or(history.clone(), |prefix| history.with_request_prefix(prefix)),
        body,
    )
}
