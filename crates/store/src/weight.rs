//! Estimates the memory of a bundle, of an agent's definition, or of a write, from the sizes of its
//! parts and within a factor of two.
//!
//! A JSON value in memory may take a hundred times the bytes of its text, so the length of the text
//! is no estimate.

use std::sync::Arc;

use super::traits::{AgentRecord, Commit, RunEnd};
use agent::hooks::ToolDecision;
use agent::record::{RunEvent, StepRecord, SubagentRecord, ToolExecutionRecord, event_weight};
use agent::state::{AgentStep, ErrorList, StateAddition, ToolExecution};
use agent::{AgentDefinition, JournalEntry};
use values::json::{Object, RawJson, Value};
use values::message::{ContentPart, MediaSource, Message, ProviderFields};
use values::model_ref::ResponseFormat;
use values::session::{
    Bundle, BundleDraft, EnvironmentState, OpenCall, Overrides, RememberedApproval, StoredContext, WaitingStep,
};

/// The overhead of an allocation: rounding, and the allocator's own data.
const ALLOCATION: usize = 16;
/// A node of a map has room for 11 entries, used or not.
const NODE_ENTRIES: usize = 11;
/// The entries of all nodes but the last, since a full node is split in the middle.
const FILLED_ENTRIES: usize = 6;
/// A node's own fields: its parent, its index there and its length.
const NODE_FIELDS: usize = 16;
/// The cost of a message in the history's list: a shared pointer and its slot in a tree.
const HISTORY_SLOT: usize = 64;
/// The overhead of an entry of the cache.
const ENTRY: usize = 512;

/// The sizes of a bundle's parts, in bytes. Shared parts count for each bundle, so the cache stays
/// within its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Weight {
    head: u64,
    environment: u64,
    context: u64,
    messages: u64,
    request_prefix: u64,
}

impl Weight {
    /// Weighs a bundle without the parts that it shares with its parent.
    pub(super) fn of(bundle: &Bundle, parent: Option<(&Bundle, &Self)>) -> Self {
        let environment = parent
            .filter(|(parent, _)| parent.head.environment_hash == bundle.head.environment_hash)
            .map(|(_, weight)| weight.environment);
        let context = parent
            .filter(|(parent, _)| parent.head.context_hash == bundle.head.context_hash)
            .map(|(_, weight)| weight.context);
        // A bundle that was compacted since then contains fewer of its parent's messages.
        let (inherited, inherited_bytes) = parent
            .filter(|(parent, _)| parent.history.first_index() == bundle.history.first_index())
            .map_or((0, 0), |(parent, weight)| (parent.history.len(), weight.messages));
        let head = ENTRY + size_of::<Bundle>() + text(&bundle.head.agent) + object(&bundle.head.metadata);
        Self {
            head: head as u64,
            environment: environment.unwrap_or_else(|| environment_bytes(&bundle.environment) as u64),
            context: context.unwrap_or_else(|| context_bytes(&bundle.context) as u64),
            messages: inherited_bytes + messages_bytes(bundle.history.iter_from(inherited)),
            request_prefix: bundle
                .history
                .request_prefix()
                .map_or(0, |prefix| prefix.bytes() as u64),
        }
    }

    /// Returns the bytes of all parts.
    pub(super) fn total(self) -> u64 {
        self.head + self.environment + self.context + self.messages + self.request_prefix
    }
}

impl AgentRecord {
    /// Returns about how many bytes of memory it takes.
    pub fn memory(&self) -> u64 {
        // No part takes more memory than its JSON value.
        let json = serde_json::to_value(&*self.definition).map_or(0, |json| value(&json));
        (size_of::<AgentDefinition>() + json) as u64
    }
}

/// Weighs the data of a commit that is checked, hashed and encoded. That excludes states that it
/// shares with its parent.
pub(super) fn commit_bytes(commit: &Commit) -> u64 {
    let drafts: u64 = commit.drafts().map(draft_bytes).sum();
    drafts + commit.run.as_ref().map_or(0, end_bytes)
}

fn draft_bytes(draft: &BundleDraft) -> u64 {
    let parent = draft.parent.as_deref();
    let is_shared = |parent: &Bundle| Arc::ptr_eq(&parent.environment, &draft.environment);
    let environment = parent.is_none_or(|parent| !is_shared(parent) && parent.environment != draft.environment);
    let context = parent.is_none_or(|parent| *parent.context != draft.context.stored);
    let environment = environment.then(|| environment_bytes(&draft.environment));
    let context = context.then(|| context_bytes(&draft.context.stored));
    let states = environment.unwrap_or_default() + context.unwrap_or_default() + object(&draft.context.metadata);
    // The messages after a new summary are counted again.
    let summaries = draft.new_messages().filter_map(|message| message.tags.covers);
    let left = summaries.map(|covers| usize::try_from(covers.to).unwrap_or(usize::MAX));
    let first = left.min().map_or(draft.inherited(), |left| left.min(draft.inherited()));
    messages_bytes(draft.history.iter_from(first)) + states as u64
}

/// Weighs the data of the end of a run that is encoded.
pub(super) fn end_bytes(end: &RunEnd) -> u64 {
    let record = &end.record;
    let signal = record.stop_signal.as_ref();
    let signal = signal.map_or(0, |signal| text(&signal.message) + object(&signal.context));
    let deliveries: usize = end.deliveries.iter().map(|delivery| text(&delivery.body)).sum();
    let rest = record.value.as_ref().map_or(0, value) + signal + deliveries + open_calls_bytes(&record.open_calls);
    messages_bytes(&record.output) + steps_bytes(&end.steps) + events_bytes(&end.events) + rest as u64
}

/// Weighs events.
pub(super) fn events_bytes(events: &[Arc<RunEvent>]) -> u64 {
    events.iter().map(|event| event_weight(&event.payload) as u64).sum()
}

fn steps_bytes(steps: &[StepRecord]) -> u64 {
    steps.iter().map(step_bytes).sum()
}

fn step_bytes(step: &StepRecord) -> u64 {
    let executions = &step.tool_executions;
    let own = size_of::<StepRecord>() + slots::<ToolExecutionRecord>(executions.capacity()) + errors(&step.errors);
    let below = executions.iter().filter_map(|execution| execution.subagent.as_deref());
    let below = below.map(|subagent| size_of::<SubagentRecord>() as u64 + steps_bytes(&subagent.steps));
    own as u64 + messages_bytes(&step.messages) + below.sum::<u64>()
}

/// Weighs the data of a journal entry that is encoded.
pub(super) fn entry_bytes(entry: &JournalEntry) -> u64 {
    match entry {
        JournalEntry::SubagentBegun { environment, .. } => environment
            .as_ref()
            .map_or(0, |environment| environment_bytes(environment) as u64),
        JournalEntry::EnvironmentChanged { state, .. } => environment_bytes(state) as u64,
        JournalEntry::CallBegun { .. } => 0,
        JournalEntry::Reached(addition) => addition_bytes(addition),
        JournalEntry::Answered { step, addition, .. } => agent_step_bytes(step) + addition_bytes(addition),
        JournalEntry::CallDecided { tool_use, addition, .. } => {
            let decision = match &tool_use.decision {
                ToolDecision::Execute => 0,
                ToolDecision::Block { reason } => text(reason),
                ToolDecision::Supply { content, .. } => parts(content),
            };
            (text(&tool_use.call.arguments) + decision) as u64 + addition_bytes(addition)
        }
        JournalEntry::CallEnded {
            execution, addition, ..
        } => execution_bytes(execution) + addition_bytes(addition),
    }
}

fn addition_bytes(addition: &StateAddition) -> u64 {
    let state = addition.state();
    let context = state.context();
    let format = format_bytes(&context.response_format) + overrides_bytes(context.overrides.as_deref());
    let own = text(&context.system_prompt) + format + object(&context.metadata);
    let steps: u64 = state.steps().map(agent_step_bytes).sum();
    messages_bytes(state.stored_messages()) + own as u64 + steps
}

fn agent_step_bytes(step: &AgentStep) -> u64 {
    let response = step.response.as_ref();
    let response = response.map_or(0, |response| {
        parts(&response.content) + provider_fields(response.provider_fields.as_ref())
    });
    let own = size_of::<AgentStep>() + response + step.value.as_ref().map_or(0, value) + errors(&step.errors);
    let executions: u64 = step.tool_executions.iter().map(execution_bytes).sum();
    messages_bytes(&step.output_messages) + own as u64 + executions
}

fn execution_bytes(execution: &ToolExecution) -> u64 {
    let own = size_of::<ToolExecution>() + text(&execution.call.arguments) + parts(&execution.content);
    let below = execution.trace.subagent.iter().flat_map(|subagent| &subagent.steps);
    own as u64 + below.map(|done| agent_step_bytes(&done.step)).sum::<u64>()
}

fn errors(errors: &ErrorList) -> usize {
    errors.iter().map(|error| text(&error.message)).sum()
}

fn environment_bytes(state: &EnvironmentState) -> usize {
    let maps = [&state.variables, &state.resources];
    let maps: usize = maps.into_iter().map(|map| map_bytes(map.len(), map)).sum();
    let workspace = state.workspace.as_ref().map_or(0, |workspace| object(&workspace.other));
    let shell = state.shell.as_ref().map_or(0, |shell| {
        let nodes = nodes_bytes(shell.variables.len(), 2 * size_of::<String>());
        let variables = shell.variables.iter().map(|(name, value)| text(name) + text(value));
        text(&shell.cwd) + nodes + variables.sum::<usize>() + object(&shell.other)
    });
    size_of::<EnvironmentState>() + ALLOCATION + maps + workspace + shell + object(&state.other)
}

fn waiting_bytes(waiting: &WaitingStep) -> usize {
    ALLOCATION + size_of::<WaitingStep>() + value(&waiting.step) + open_calls_bytes(&waiting.open_calls)
}

fn open_calls_bytes(calls: &[OpenCall]) -> usize {
    let calls = calls.iter();
    let bytes = calls.map(|call| {
        let texts = text(&call.call_id) + text(&call.tool);
        size_of::<OpenCall>() + texts + value(&call.arguments) + value(&call.response_schema)
    });
    bytes.sum()
}

fn context_bytes(context: &StoredContext) -> usize {
    let model = context.model.as_ref().map_or(0, |model| {
        allocated(model.provider().len()) + allocated(model.model().len())
    });
    size_of::<StoredContext>()
        + ALLOCATION
        + model
        + text(&context.system_prompt)
        + format_bytes(&context.response_format)
        + overrides_bytes(context.overrides.as_deref())
        + context.waiting.as_deref().map_or(0, waiting_bytes)
        + context.remembered_approvals.len() * size_of::<RememberedApproval>()
        + context.tool_pins.bytes()
        + object(&context.other)
}

fn format_bytes(format: &ResponseFormat) -> usize {
    match format {
        ResponseFormat::JsonSchema { name, schema, .. } => text(name) + value(schema),
        ResponseFormat::Text | ResponseFormat::JsonObject => 0,
    }
}

fn overrides_bytes(overrides: Option<&Overrides>) -> usize {
    let Some(overrides) = overrides else { return 0 };
    let parameters = &overrides.parameters;
    let texts = parameters.stop.iter().chain(&parameters.reasoning_effort);
    let texts = texts
        .chain(&overrides.system_prompt)
        .chain(overrides.tools.iter().flatten());
    size_of::<Overrides>()
        + ALLOCATION
        + slots::<String>(parameters.stop.capacity())
        + slots::<String>(overrides.tools.as_ref().map_or(0, Vec::capacity))
        + texts.map(text).sum::<usize>()
}

/// Weighs messages.
pub(super) fn messages_bytes<'a>(messages: impl IntoIterator<Item = &'a Arc<Message>>) -> u64 {
    let messages = messages.into_iter();
    messages.map(|message| message_bytes(message) as u64).sum()
}

/// Weighs a message.
pub fn message_bytes(message: &Message) -> usize {
    size_of::<Message>()
        + ALLOCATION
        + HISTORY_SLOT
        + optional(message.name.as_ref())
        + message.tags.section.as_str().len()
        + ALLOCATION
        + parts(&message.content)
        + provider_fields(message.provider_fields.as_ref())
        + object(&message.metadata)
}

fn provider_fields(given: Option<&ProviderFields>) -> usize {
    given.map_or(0, |given| {
        let entries = given.fields.iter().map(|(name, json)| text(name) + raw(json));
        let names = text(&given.provider) + optional(given.model.as_ref());
        names + slots::<(String, RawJson)>(given.fields.capacity()) + entries.sum::<usize>()
    })
}

fn parts(content: &Vec<ContentPart>) -> usize {
    slots::<ContentPart>(content.capacity()) + content.iter().map(part).sum::<usize>()
}

/// Weighs a part without its slot in the list.
fn part(part: &ContentPart) -> usize {
    match part {
        ContentPart::Text(part) => {
            let citations = part.citations.iter().map(|citation| raw(&citation.0));
            text(&part.text)
                + optional(part.signature.as_ref())
                + slots::<RawJson>(part.citations.capacity())
                + citations.sum::<usize>()
        }
        ContentPart::Image(part) => media(&part.source) + optional(part.detail.as_ref()),
        ContentPart::Document(part) => media(&part.source) + optional(part.name.as_ref()),
        ContentPart::ToolCall(call) => {
            text(&call.id) + text(&call.name) + text(&call.arguments) + optional(call.signature.as_ref())
        }
        ContentPart::ToolResult(result) => text(&result.call_id) + text(&result.name) + parts(&result.content),
        ContentPart::Reasoning(part) => {
            let others = [&part.signature, &part.encrypted, &part.id];
            text(&part.text) + others.into_iter().map(|other| optional(other.as_ref())).sum::<usize>()
        }
        ContentPart::Refusal { text: words } => text(words),
        ContentPart::Opaque(part) => text(&part.provider) + raw(&part.raw),
        ContentPart::Unknown(json) => value(json),
    }
}

fn media(source: &MediaSource) -> usize {
    match source {
        MediaSource::Url { url } => text(url),
        MediaSource::Base64 { media_type, data } => text(media_type) + text(data),
        MediaSource::ProviderFile { provider, file_id } => text(provider) + text(file_id),
    }
}

/// Weighs a value without its slot in a list or a map. The recursion is bounded, since the parser
/// bounds the depth of a value.
fn value(json: &Value) -> usize {
    match json {
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
        Value::String(words) => text(words),
        Value::Array(items) => slots::<Value>(items.capacity()) + items.iter().map(value).sum::<usize>(),
        Value::Object(entries) => object(entries),
    }
}

fn object(entries: &Object) -> usize {
    map_bytes(entries.len(), entries)
}

fn map_bytes<'a>(len: usize, entries: impl IntoIterator<Item = (&'a String, &'a Value)>) -> usize {
    let nodes = nodes_bytes(len, size_of::<String>() + size_of::<Value>());
    let contents = entries.into_iter().map(|(key, json)| text(key) + value(json));
    nodes + contents.sum::<usize>()
}

/// Weighs the nodes of a map whose entries take `entry` bytes each.
fn nodes_bytes(len: usize, entry: usize) -> usize {
    let node = NODE_ENTRIES * entry + NODE_FIELDS + ALLOCATION;
    let nodes = if len <= NODE_ENTRIES {
        usize::from(len > 0)
    } else {
        len.div_ceil(FILLED_ENTRIES)
    };
    nodes * node
}

fn slots<T>(capacity: usize) -> usize {
    allocated(capacity * size_of::<T>())
}

fn text(text: &String) -> usize {
    allocated(text.capacity())
}

fn optional(words: Option<&String>) -> usize {
    words.map_or(0, text)
}

fn raw(json: &RawJson) -> usize {
    json.as_str().len() + 2 * ALLOCATION
}

fn allocated(bytes: usize) -> usize {
    if bytes == 0 { 0 } else { bytes + ALLOCATION }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use values::clock::Timestamp;
    use values::session::Hash;

    /// Checks the weight: at least the minimum that the parts take, and at most twice that.
    #[track_caller]
    fn assert_weight(json: &Value, at_least: usize) {
        let weight = value(json);
        assert!(
            (at_least..=2 * at_least).contains(&weight),
            "{weight}, at least {at_least}"
        );
    }

    #[test]
    fn json_is_weighed_by_its_memory() {
        let (slot, entry) = (size_of::<Value>(), size_of::<String>() + size_of::<Value>());
        assert_weight(&json!(vec![json!({"a": 0}); 10_000]), 10_000 * (slot + 11 * entry + 1));
        assert_weight(&json!(vec![json!({}); 10_000]), 10_000 * slot);
        assert_weight(&json!(vec![json!([0]); 10_000]), 10_000 * (2 * slot));
        assert_weight(&json!("x".repeat(10_000)), 10_000);
        // No allocation takes less than 16 bytes.
        let wide: Object = (0..10_000).map(|key| (format!("{key:08}"), json!(0))).collect();
        assert_weight(&Value::Object(wide), 10_000 * (entry + 16));
    }

    #[test]
    fn an_agent_is_weighed_by_its_texts_and_its_values() {
        let of = |field: &str, value: Value| AgentRecord {
            definition: Arc::new(serde_json::from_value(json!({"name": "a", "model": "m/m", field: value})).unwrap()),
            version: Hash::from([0; 32]),
            created_at: Timestamp::UNIX_EPOCH,
        };
        let small = of("description", json!("")).memory();
        assert!(small < 8 << 10, "{small}");
        let at_least = |record: AgentRecord, bytes: usize| {
            let memory = usize::try_from(record.memory()).unwrap();
            assert!((bytes..2 * bytes).contains(&memory), "{memory}, at least {bytes}");
        };
        at_least(of("system_prompt", json!("x".repeat(1_000_000))), 1_000_000);
        let entry = size_of::<String>() + size_of::<Value>();
        at_least(
            of("metadata", json!({"a": vec![json!({"a": 0}); 10_000]})),
            10_000 * 11 * entry,
        );
    }
}
