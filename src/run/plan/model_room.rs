//! Limits the memory of large requests to models.
//!
//! A request stays in memory until the model responds, since it may be sent again. So large
//! requests share a limited number of bytes, fairly among tenants (`agent/request_room.rs`). They
//! are measured and encoded on other threads.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use serde::Serialize;

use agent::RequestRoom;
use agent::ports::{Model, ModelEvent, ModelRequest, ModelStream, StructuredOutput};
use tasks::off_thread::{by_size, by_size_of};
use values::json::{json_length, weight};
use values::message::Message;
use values::tenant::TenantId;

/// A model whose large requests wait for memory.
#[derive(Debug)]
pub(in crate::run) struct SharingModel {
    model: Arc<dyn Model>,
    tenant: TenantId,
    room: RequestRoom,
}

impl SharingModel {
    /// Wraps a model, so that the tenant's requests share the memory of `room`.
    pub(in crate::run) fn wrap(model: Arc<dyn Model>, tenant: &TenantId, room: &RequestRoom) -> Arc<dyn Model> {
        Arc::new(Self {
            model,
            tenant: tenant.clone(),
            room: room.clone(),
        })
    }
}

impl Model for SharingModel {
    fn stream(&self, request: ModelRequest) -> ModelStream {
        let (model, tenant, room) = (Arc::clone(&self.model), self.tenant.clone(), self.room.clone());
        let answer = async move {
            let in_memory = conversation_bytes_in_memory(&request) as u64;
            let bytes = by_size_of(&tenant, in_memory, &request, encoded_bytes).await;
            let mut share = room.take(&tenant, bytes).await;
            let answer = by_size(&tenant, bytes as u64, move || model.stream(request)).await;
            answer.inspect(move |event| {
                // After these events the request may be sent again, so its memory is still needed.
                let may_be_sent_again = matches!(
                    event,
                    Ok(ModelEvent::Usage(_) | ModelEvent::AttemptFailed { .. } | ModelEvent::AttemptBegun)
                );
                if !may_be_sent_again {
                    drop(share.take());
                }
            })
        };
        stream::once(answer).flatten().boxed()
    }

    fn structured_output(&self) -> StructuredOutput {
        self.model.structured_output()
    }
}

/// Estimates the bytes of the conversation of a request in memory. The definition of the agent
/// bounds the rest of the request.
fn conversation_bytes_in_memory(request: &ModelRequest) -> usize {
    let messages = request.messages.total(|message| weight(&sent(message)) as u64);
    request.system.len() + usize::try_from(messages).unwrap_or(usize::MAX)
}

/// Estimates the encoded bytes of a request.
fn encoded_bytes(request: &ModelRequest) -> usize {
    let messages = request.messages.total(|message| json_length(&sent(message)) as u64);
    let tools = request.tools.iter();
    let tools = tools.map(|tool| json_length(&(&tool.name, &tool.description, &tool.parameters)));
    usize::try_from(messages).unwrap_or(usize::MAX)
        + tools.sum::<usize>()
        + json_length(&request.system)
        + json_length(&*request.provider_tools)
        + json_length(&request.response_format)
        + json_length(&request.parameters.extra)
}

/// Returns the parts of a message that a model reads.
fn sent(message: &Message) -> impl Serialize {
    (&message.name, &message.content, &message.provider_fields)
}

#[cfg(test)]
mod tests {
    use std::thread::{self, ThreadId};

    use chrono::DateTime;
    use serde_json::json;
    use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
    use tokio::sync::oneshot;

    use super::*;
    use agent::ports::ToolSpec;
    use values::ids::{MessageId, UuidV7Source};
    use values::json::{RawJson, Value};
    use values::message::{ProviderFields, Role};
    use values::model_parameters::{ModelParameters, ToolChoice};
    use values::model_ref::ResponseFormat;
    use values::usage::Usage;

    /// A request to a model whose completion is awaited: the thread that sent it, and the sender
    /// that releases the completion.
    type Asked = (ThreadId, oneshot::Sender<()>);

    /// A model that reports its usage at once and sends one word when it is released. Sends nothing
    /// after that.
    #[derive(Debug)]
    struct OnDemand(UnboundedSender<Asked>);

    impl Model for OnDemand {
        fn stream(&self, _request: ModelRequest) -> ModelStream {
            let (asked, thread) = (self.0.clone(), thread::current().id());
            let word = async move {
                let (answer, release) = oneshot::channel();
                asked.send((thread, answer)).unwrap();
                release.await.unwrap();
                let text = "word".to_owned();
                Ok(ModelEvent::TextDelta { text })
            };
            let used = stream::iter([Ok(ModelEvent::Usage(Usage::default()))]);
            used.chain(stream::once(word)).chain(stream::pending()).boxed()
        }
    }

    fn saying(text: String) -> ModelRequest {
        let id = MessageId::generate(&UuidV7Source);
        ModelRequest {
            model: "m".to_owned(),
            system: "".into(),
            messages: [Arc::new(Message::text(id, Role::User, text, DateTime::UNIX_EPOCH))].into(),
            tools: [].into(),
            provider_tools: Arc::default(),
            tool_choice: ToolChoice::Auto,
            response_format: ResponseFormat::Text,
            max_output_tokens: None,
            parameters: Arc::default(),
            trace: None,
        }
    }

    /// A request of about `bytes` bytes.
    fn request(bytes: usize) -> ModelRequest {
        let rest = encoded_bytes(&saying(String::new()));
        saying("x".repeat(bytes - rest))
    }

    struct Setup {
        room: RequestRoom,
        model: Arc<dyn Model>,
        asked: UnboundedReceiver<Asked>,
    }

    impl Setup {
        fn new(room: usize) -> Self {
            let (sender, asked) = unbounded_channel();
            Self {
                room: RequestRoom::new(room),
                model: Arc::new(OnDemand(sender)),
                asked,
            }
        }

        /// Sends a request for a tenant and reads until the first word. Returns the rest of the
        /// completion.
        fn ask(&self, tenant: &str, bytes: usize) -> tokio::task::JoinHandle<ModelStream> {
            self.ask_this(tenant, request(bytes))
        }

        fn ask_this(&self, tenant: &str, request: ModelRequest) -> tokio::task::JoinHandle<ModelStream> {
            let tenant: TenantId = tenant.parse().unwrap();
            let mut answer = SharingModel::wrap(Arc::clone(&self.model), &tenant, &self.room).stream(request);
            tokio::spawn(async move {
                while !matches!(answer.next().await.unwrap(), Ok(ModelEvent::TextDelta { .. })) {}
                answer
            })
        }
    }

    #[tokio::test]
    async fn large_requests_of_a_tenant_wait_until_earlier_ones_are_answered_and_hold_no_other_tenant() {
        const LARGE: usize = 400 << 10;
        const SMALL: usize = 63 << 10;
        let mut setup = Setup::new(2 * LARGE);
        let first = setup.ask("one", LARGE);
        let (thread, answer) = setup.asked.recv().await.unwrap();
        assert_ne!(thread, thread::current().id());

        // The tenant already holds half of the memory, so its next request waits. Another tenant's
        // request does not. Then the memory is full, and a small request passes.
        let second = setup.ask("one", LARGE);
        tokio::task::yield_now().await;
        let other = setup.ask("two", LARGE);
        let (_, answer_other) = setup.asked.recv().await.unwrap();
        assert_eq!(setup.room.taken(), 2 * LARGE);
        let small = setup.ask("one", SMALL);
        tokio::task::yield_now().await;
        let (thread, answer_small) = setup.asked.try_recv().unwrap();
        assert_eq!(thread, thread::current().id());
        answer_small.send(()).unwrap();
        drop(small.await.unwrap());
        answer_other.send(()).unwrap();
        drop(other.await.unwrap());
        assert!(setup.asked.try_recv().is_err());

        // The first word releases the memory, although the rest of the completion never arrives.
        answer.send(()).unwrap();
        let rest = first.await.unwrap();
        let (_, answer) = setup.asked.recv().await.unwrap();
        answer.send(()).unwrap();
        drop((rest, second.await.unwrap()));
        assert_eq!(setup.room.taken(), 0);
    }

    #[test]
    fn a_large_request_is_weighed_beside_the_async_workers() {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        runtime.max_blocking_threads(1).build().unwrap().block_on(async {
            let (release, held) = std::sync::mpsc::channel::<()>();
            let other = tokio::task::spawn_blocking(move || held.recv());
            let mut setup = Setup::new(16 << 20);
            let answer = setup.ask("one", 1 << 20);
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert_eq!(setup.room.taken(), 0, "it was weighed here");
            drop((release, other));
            let (_, release) = setup.asked.recv().await.unwrap();
            assert_eq!(setup.room.taken(), 1 << 20);
            release.send(()).unwrap();
            drop(answer.await.unwrap());
        });
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_takes_no_room() {
        let mut setup = Setup::new(1 << 20);
        let first = setup.ask("one", 400 << 10);
        let second = setup.ask("one", 400 << 10);
        let (_, mut answer) = setup.asked.recv().await.unwrap();
        for given_up in [second, first] {
            given_up.abort();
            assert!(given_up.await.is_err_and(|error| error.is_cancelled()));
        }
        assert_eq!(setup.room.taken(), 0);
        answer.closed().await;
    }

    #[tokio::test]
    async fn a_request_takes_the_room_of_its_text_as_json() {
        for (text, bytes) in [("\u{1}", 6), ("\"", 2), ("\n", 2), ("é", 2), ("x", 1)] {
            for encoded in [120_000, 1_200_000] {
                let mut setup = Setup::new(16 << 20);
                let answer = setup.ask_this("one", saying(text.repeat(encoded / bytes)));
                let (_, release) = setup.asked.recv().await.unwrap();
                let taken = setup.room.taken();
                assert!(
                    (encoded..encoded + 1_000).contains(&taken),
                    "{text:?}: {taken} of {encoded}"
                );
                release.send(()).unwrap();
                drop(answer.await.unwrap());
            }
        }
    }

    #[test]
    fn the_bytes_of_a_request_include_all_texts_that_it_holds() {
        let long = || "x".repeat(100_000);
        let tool = |description, parameters| {
            let name = "t".to_owned();
            let (idempotent, timeout) = (false, None);
            let tool = ToolSpec {
                name,
                description,
                parameters,
                idempotent,
                read_only: false,
                destructive: false,
                timeout,
            };
            Arc::from([tool])
        };
        let changes: [&dyn Fn(&mut ModelRequest); 7] = [
            &|request| {
                let extra = json!({"a": [long()]});
                request.parameters = Arc::new(ModelParameters {
                    extra: serde_json::from_value(extra).unwrap(),
                    ..ModelParameters::default()
                });
            },
            &|request| request.system = long().into(),
            &|request| request.tools = tool(long(), json!({})),
            &|request| request.tools = tool(String::new(), json!({"properties": {"a": {"enum": [long()]}}})),
            &|request| {
                request.provider_tools = Arc::new(serde_json::from_value(json!({"p": [{"a": long()}]})).unwrap());
            },
            &|request| request.response_format = json_schema(json!({"description": long()})),
            &|request| {
                let provider = "p".to_owned();
                let fields = vec![("reasoning_details".to_owned(), RawJson::new(long()))];
                let message = Message {
                    provider_fields: Some(ProviderFields {
                        provider,
                        model: None,
                        fields,
                    }),
                    ..(*request.messages[0]).clone()
                };
                request.messages = [Arc::new(message)].into();
            },
        ];
        for (position, change) in changes.iter().enumerate() {
            let mut request = saying(String::new());
            change(&mut request);
            let bytes = encoded_bytes(&request);
            assert!((100_000..110_000).contains(&bytes), "{position}: {bytes}");
        }
    }

    fn json_schema(schema: Value) -> ResponseFormat {
        ResponseFormat::JsonSchema {
            name: "shape".to_owned(),
            schema,
            strict: true,
        }
    }
}
