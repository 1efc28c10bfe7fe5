//! The client of rmcp, which asks the user and repeats a call by itself.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ClientJsonRpcMessage, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, FormElicitationCapability, Implementation, JsonObject, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, RequestContext, serve_client_with_lifecycle};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClient, StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
};
use rmcp::{ClientHandler, ErrorData, RoleClient};
use serde_json::json;
use sse_stream::{Error as SseError, Sse, SseStream};

use super::McpApp;
use crate::support::test_app::plain_client;

/// Sends the messages of the library.
#[derive(Clone)]
struct Http(reqwest::Client);

type Failure = StreamableHttpError<reqwest::Error>;

impl StreamableHttpClient for Http {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        _: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let mut request = self
            .0
            .post(uri.as_ref())
            .header("accept", "application/json, text/event-stream")
            .header("content-type", "application/json")
            .body(serde_json::to_string(&message).unwrap());
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        if response.status() == StatusCode::ACCEPTED {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if response.headers()["content-type"] == "application/json" {
            let bytes = response.bytes().await.map_err(StreamableHttpError::Client)?;
            let message = serde_json::from_slice(&bytes).unwrap();
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        let events = SseStream::from_bytes_stream(response.bytes_stream()).boxed();
        Ok(StreamableHttpPostResponse::Sse(events, None))
    }

    async fn delete_session(
        &self,
        _: Arc<str>,
        _: Arc<str>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        Ok(())
    }

    async fn get_stream(
        &self,
        _: Arc<str>,
        _: Option<Arc<str>>,
        _: Option<String>,
        _: Option<String>,
        _: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        Err(StreamableHttpError::ServerDoesNotSupportSse)
    }
}

/// A user who approves everything.
struct Approver;

impl ClientHandler for Approver {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let mut elicitation = ElicitationCapability::default();
        elicitation.form = Some(FormElicitationCapability::default());
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("test", "1"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({"decision": "approve"})))
    }
}

fn arguments(input: &str) -> JsonObject {
    JsonObject::from_iter([("input".to_owned(), json!(input))])
}

#[tokio::test]
async fn the_library_lists_calls_and_answers_in_both_eras() {
    let (app, _database) = McpApp::with_agents(&[]).await;
    let discover = ClientLifecycleMode::Discover {
        preferred_versions: vec![ProtocolVersion::V_2026_07_28],
    };
    for (lifecycle, is_modern) in [(discover, true), (ClientLifecycleMode::Initialize, false)] {
        let config = StreamableHttpClientTransportConfig::with_uri(format!("http://{}/mcp", app.address));
        let transport = StreamableHttpClientTransport::with_client(Http(plain_client()), config);
        let client = serve_client_with_lifecycle(Approver, transport, lifecycle)
            .await
            .unwrap();
        let tools = client.list_all_tools().await.unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool.name.as_ref()).collect();
        assert_eq!(names, ["asker", "demo", "echo"]);
        let call = |name: &'static str, input: &str| {
            client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments(input)))
        };
        let echoed = call("echo", "hi").await.unwrap();
        assert_eq!(echoed.structured_content.unwrap()["output"], "echo: hi");
        let asked = call("asker", &json!([["c1", "deploy", {"note": "n"}]]).to_string())
            .await
            .unwrap();
        let status = asked.structured_content.unwrap()["status"].clone();
        assert_eq!(status, if is_modern { "completed" } else { "waiting" });
        let resources = client.list_all_resources().await.unwrap();
        assert!(resources[0].uri.starts_with("session://"));
        client.cancel().await.unwrap();
    }
    assert_eq!(app.deploy.begun(), 1);
    app.finish().await;
}
