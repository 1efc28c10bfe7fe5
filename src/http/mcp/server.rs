//! The resources that serve one HTTP request. `handler.rs` answers its message.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::http::auth::Call;
use crate::http::mcp_settings::McpSettings;
use store::keys::Scope;
use tasks::fair_share::Share;

/// The server of one HTTP request.
#[derive(Debug, Clone)]
pub(super) struct McpServer {
    pub(super) call: Call,
    pub(super) settings: Arc<McpSettings>,
    /// The room of the response, which is released when it has been sent.
    pub(super) sent: Arc<Mutex<Option<Share>>>,
}

impl McpServer {
    pub(super) fn new(call: Call, settings: Arc<McpSettings>) -> Self {
        Self {
            call,
            settings,
            sent: Arc::default(),
        }
    }

    /// Holds room for the response until it has been sent.
    pub(super) fn hold(&self, room: Share) {
        *self.sent.lock() = Some(room);
    }

    /// Returns whether there is room for the response already.
    pub(super) fn holds_room(&self) -> bool {
        self.sent.lock().is_some()
    }

    /// Returns whether the caller's key has a scope.
    pub(super) fn may(&self, scope: Scope) -> bool {
        self.call.check_scope(scope).is_ok()
    }
}
