//! Handles the questions of a server during a request, and its notices of changed lists.

use std::sync::Arc;
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
    ErrorData, FormElicitationCapability, Implementation, ProtocolVersion,
};
use rmcp::service::{InboundStreamOrigin, NotificationContext, RequestContext, RoleClient};
use tokio::time::timeout;

use super::requests::Requests;

/// How long a question stays open whose request is being cancelled.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// Handles the requests and notifications of a server on a connection.
#[derive(Debug, Clone)]
pub(super) struct Handler {
    requests: Arc<Requests>,
}

impl Handler {
    pub(super) fn new(requests: &Arc<Requests>) -> Self {
        Self {
            requests: Arc::clone(requests),
        }
    }
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        let form = FormElicitationCapability::default();
        capabilities.elicitation = Some(ElicitationCapability::new().with_form(form));
        let client = Implementation::new("agent-runtime", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, client).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        question: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let request_id = match context.extensions.get::<InboundStreamOrigin>() {
            Some(InboundStreamOrigin::OutboundRequest(id)) => Some(id),
            _ => None,
        };
        if let Some(answer) = self.requests.answer(request_id, &question) {
            return Ok(answer);
        }
        // The request is being cancelled, and made again once the caller has answered. An answer
        // now might have an effect.
        let _ = timeout(CANCEL_PATIENCE, context.ct.cancelled()).await;
        Ok(ElicitResult::new(ElicitationAction::Cancel))
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.requests.set_lists_changed();
    }
}
