//! Reads chunks of completions: lines of JSON, of which the last is `done`, or one JSON body.

use std::sync::Arc;

use crate::body::Body;
use crate::calls::{Beginning, CallMaker, arguments_of};
use crate::decoder::{FrameReader, Progress, StreamDecoder, read_object};
use crate::delta::DeltaKind;
use crate::ending::{Ending, reason_of};
use crate::envelope::Envelope;
use crate::errors::error_in;
use crate::fault::Fault;
use crate::fields::{self, Fields};
use crate::retry::AttemptError;
use crate::settings::CapSettings;
use agent::ports::ModelEvent;
use agent::state::ModelResponse;
use values::ids::IdSource;
use values::message::{ContentPart, ProviderFields, ToolCall};
use values::usage::Usage;

/// Decodes one completion.
pub(super) type OllamaDecoder = StreamDecoder<OllamaReader>;

/// Reads one completion.
#[derive(Debug)]
pub(super) struct OllamaReader {
    reasoning: String,
    text: String,
    calls: Vec<ToolCall>,
    maker: CallMaker,
    envelope: Envelope,
    ending: Ending,
    is_done: bool,
}

impl OllamaDecoder {
    /// Makes a decoder of a completion of the provider. Calls without an id get one from `ids`.
    pub(super) fn of_lines(
        provider: &str,
        content_type: Option<&str>,
        caps: CapSettings,
        ids: Arc<dyn IdSource>,
    ) -> Self {
        Self::of_body(provider, Body::of_lines(content_type, caps), caps, ids)
    }
}

impl FrameReader for OllamaReader {
    fn new(provider: &str, ids: Arc<dyn IdSource>, caps: CapSettings) -> Self {
        Self {
            reasoning: String::new(),
            text: String::new(),
            calls: Vec::new(),
            maker: CallMaker::new(ids, caps.tool_calls),
            envelope: Envelope::new(provider),
            ending: Ending::default(),
            is_done: false,
        }
    }

    fn take_frame(&mut self, _name: &str, data: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        self.take_chunk(data, events)?;
        Ok(if self.is_done {
            Progress::Complete
        } else {
            Progress::Open
        })
    }

    fn take_whole(&mut self, body: &str, events: &mut Vec<ModelEvent>) -> Result<Progress, AttemptError> {
        self.take_chunk(body, events)?;
        Ok(Progress::Ended)
    }

    fn is_finished(&self) -> bool {
        self.is_done
    }

    fn finish(self, _events: &mut Vec<ModelEvent>) -> Result<ModelResponse, AttemptError> {
        // Without a signature, the reasoning does not show whose it is.
        let owner = (!self.reasoning.is_empty()).then(|| ProviderFields::owner(&self.envelope.provider));
        let mut content = Vec::new();
        for (kind, text) in [(DeltaKind::Reasoning, self.reasoning), (DeltaKind::Text, self.text)] {
            if !text.is_empty() {
                content.push(kind.part(text, None));
            }
        }
        content.extend(self.calls.into_iter().map(ContentPart::ToolCall));
        let response = self.envelope.response(content, self.ending.reason());
        Ok(ModelResponse {
            provider_fields: response.provider_fields.or(owner),
            ..response
        })
    }
}

impl OllamaReader {
    /// Reads a chunk. Reads its usage even if the chunk is unusable.
    fn take_chunk(&mut self, text: &str, events: &mut Vec<ModelEvent>) -> Result<(), AttemptError> {
        let chunk = read_object(text)?;
        let message = chunk.object("message");
        if let Some(error) = error_in(&chunk, text, message.is_some() || chunk.has("done")) {
            return Err(error);
        }
        self.envelope.take(&chunk, "model", "id");
        let taken = message.map_or(Ok(()), |message| self.take_message(&message, events));
        if chunk.get("done").is_some_and(|done| done.get() == "true") {
            self.is_done = true;
            if let Some(reason) = reason_of(&chunk, "done_reason") {
                self.ending.take(&reason);
            }
            events.extend(self.envelope.changed_usage(usage_of(&chunk)));
        }
        taken.map_err(|fault| fault.error(text))
    }

    fn take_message(&mut self, message: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        for (kind, name, words) in [
            (DeltaKind::Reasoning, "thinking", &mut self.reasoning),
            (DeltaKind::Text, "content", &mut self.text),
        ] {
            if let Some(piece) = message.filled(name) {
                words.push_str(&piece);
                events.push(kind.event(piece));
            }
        }
        for raw in message.items("tool_calls") {
            let call = fields::object(raw).ok_or(Fault::Unreadable)?;
            self.take_call(&call, events)?;
        }
        Ok(())
    }

    /// Reads a call, which arrives whole. Older servers give it no id.
    fn take_call(&mut self, call: &Fields<'_>, events: &mut Vec<ModelEvent>) -> Result<(), Fault> {
        let function = call.object("function").unwrap_or_default();
        let mut call = self.maker.make(Beginning {
            id: call.filled("id"),
            name: function.filled("name"),
            arguments: arguments_of(&function),
            extras: None,
        })?;
        self.maker.start(&mut call, events);
        self.calls.extend(call.finish(true, events));
        Ok(())
    }
}

/// Reads the counts. Prompts that the server has cached have none.
fn usage_of(chunk: &Fields<'_>) -> Usage {
    let count = |name: &str| chunk.count(name).unwrap_or_default();
    let (input_tokens, output_tokens) = (count("prompt_eval_count"), count("eval_count"));
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        ..Usage::default()
    }
}
