//! One server: its connections and its offers.
//!
//! Each tenant has a connection of its own, so that no server sees two tenants as one client. A
//! connection opens when it is needed and closes when it has been unused for a while.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rmcp::model::ClientRequest;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::connection::{Connection, Reply};
use super::definition::McpDefinition;
use super::endpoint::{Endpoint, Era};
use super::list::list;
use super::listing::Listing;
use super::observer::Observer;
use super::request_error::RequestError;
use super::requests::Requests;
use super::stdio::Starts;
use crate::fault::DefinitionFault;
use crate::{Commands, ToolSecrets};
use agent::ports::ToolServerState;
use net::outgoing::OutgoingClient;
use values::tenant::TenantId;

/// How long an unused connection stays open.
const IDLE: Duration = Duration::from_mins(5);
/// How long a server that could not be reached is not tried again.
const PAUSE: Duration = Duration::from_secs(5);
/// How much longer opening a connection may take, so that its own error comes first.
const GRACE: Duration = Duration::from_secs(1);
/// The most tenants with a connection to one server.
const MAX_CONNECTIONS: usize = 1_024;

/// The most processes of one server, each for a tenant.
const MAX_PROCESSES: usize = 64;

/// A server that agents list.
#[derive(Debug)]
pub(super) struct McpServer {
    pub(super) definition: McpDefinition,
    endpoint: Endpoint,
    /// The kind of revision that the server spoke last.
    era: Mutex<Era>,
    slots: Mutex<HashMap<TenantId, Arc<Slot>>>,
    tasks: TaskTracker,
    stop: CancellationToken,
}

/// The connection of a tenant. The request that opens it holds the lock.
type Slot = tokio::sync::Mutex<SlotState>;

#[derive(Debug, Default)]
struct SlotState {
    connection: Option<Arc<Connection>>,
    /// The last failure, and when the server may be tried again.
    failed: Option<(RequestError, Instant)>,
    starts: Starts,
}

impl McpServer {
    pub(super) fn new(
        definition: McpDefinition,
        (secrets, client, commands): (&ToolSecrets, &OutgoingClient, &Arc<Commands>),
        tasks: TaskTracker,
        stop: CancellationToken,
    ) -> Result<Self, DefinitionFault> {
        definition.check()?;
        let endpoint = Endpoint::of(&definition, secrets, client, commands)?;
        Ok(Self {
            definition,
            endpoint,
            era: Mutex::new(Era::Modern),
            slots: Mutex::default(),
            tasks,
            stop,
        })
    }

    /// Returns why the server can never be used, as far as that is known without a connection.
    pub(super) fn problem(&self) -> Option<String> {
        self.endpoint.problem()
    }

    /// Returns what is known of the server without a request to it. A connection that is being
    /// opened does not count yet.
    pub(super) fn state(&self, tenant: &TenantId) -> ToolServerState {
        if self.problem().is_some() {
            return ToolServerState::Unusable;
        }
        let slot = self.slots.lock().get(tenant).cloned();
        let Some(Ok(state)) = slot.as_ref().map(|slot| slot.try_lock()) else {
            return ToolServerState::Idle;
        };
        match (&state.connection, &state.failed) {
            (Some(_), _) => ToolServerState::Connected,
            (None, Some(_)) => ToolServerState::Failed,
            (None, None) => ToolServerState::Idle,
        }
    }

    /// Returns the offers of the server to the tenant.
    pub(super) async fn listing(self: &Arc<Self>, tenant: &TenantId) -> Result<Arc<Listing>, RequestError> {
        let limit = self.definition.connect_timeout();
        let listed = tokio::time::timeout(limit + GRACE, self.list(tenant, limit)).await;
        let listed = listed.unwrap_or(Err(RequestError::Timeout(limit)));
        if let Err(error) = &listed {
            let server = &self.definition.name;
            tracing::warn!(server, %tenant, %error, "an MCP server is unavailable");
        }
        listed
    }

    async fn list(self: &Arc<Self>, tenant: &TenantId, limit: Duration) -> Result<Arc<Listing>, RequestError> {
        // Before the whole is given up, so that the pages of the list up to there are used.
        let until = Instant::now() + limit + GRACE / 2;
        let connection = self.connection(tenant).await?;
        if let Some(listing) = connection.listed() {
            return Ok(listing);
        }
        let (mut connection, name) = (connection, &self.definition.name);
        let time = (until.min(Instant::now() + limit), limit);
        let mut listed = list(&connection, name, tenant, time).await;
        // A server that has changed its revisions since it was listed needs a new connection.
        if listed.is_err() && connection.was_listed() && connection.is_outdated() {
            connection = self.connection(tenant).await?;
            listed = list(&connection, name, tenant, (until, limit)).await;
        }
        let listing = Arc::new(listed?);
        connection.retain(&listing);
        Ok(listing)
    }

    /// Sends a request of the tenant.
    pub(super) async fn request(
        self: &Arc<Self>,
        tenant: &TenantId,
        request: ClientRequest,
        observer: Observer,
    ) -> Result<Reply, RequestError> {
        let limit = self.definition.connect_timeout();
        let connection = tokio::time::timeout(limit + GRACE, self.connection(tenant)).await;
        let connection = connection.unwrap_or(Err(RequestError::Timeout(limit)))?;
        if !connection.was_listed() && matches!(request, ClientRequest::CallToolRequest(_)) {
            // The transport of a modern server reads from the list which arguments are headers.
            let time = (Instant::now() + limit, limit);
            let listed = list(&connection, &self.definition.name, tenant, time).await?;
            connection.retain(&Arc::new(listed));
        }
        connection.request(request, self.definition.timeout, observer).await
    }

    /// Returns an open connection. Requests of one tenant share it.
    async fn connection(self: &Arc<Self>, tenant: &TenantId) -> Result<Arc<Connection>, RequestError> {
        let slot = self.slot(tenant)?;
        let mut slot = slot.lock().await;
        if let Some(connection) = slot.connection.take()
            && connection.responds().await
        {
            return Ok(Arc::clone(slot.connection.insert(connection)));
        }
        if let Some((error, until)) = &slot.failed
            && *until > Instant::now()
        {
            return Err(error.clone());
        }
        match self.open(tenant, &mut slot.starts).await {
            Ok(connection) => {
                let connection = Arc::new(connection);
                slot.connection = Some(Arc::clone(&connection));
                slot.failed = None;
                self.close_when_unused(tenant, &connection);
                Ok(connection)
            }
            Err(error) => {
                slot.failed = Some((error.clone(), Instant::now() + PAUSE));
                Err(error)
            }
        }
    }

    fn slot(&self, tenant: &TenantId) -> Result<Arc<Slot>, RequestError> {
        let mut slots = self.slots.lock();
        if let Some(slot) = slots.get(tenant) {
            return Ok(Arc::clone(slot));
        }
        let most = if self.endpoint.is_process() {
            MAX_PROCESSES
        } else {
            MAX_CONNECTIONS
        };
        if slots.len() >= most {
            // Connections that failed have nothing to close. A process that was started a moment
            // ago still counts.
            let now = Instant::now();
            let is_in_use = |state: &SlotState| state.connection.is_some() || state.starts.are_recent(now);
            slots.retain(|_, slot| slot.try_lock().map_or(true, |state| is_in_use(&state)));
        }
        if slots.len() >= most || self.stop.is_cancelled() {
            let words = "there are too many connections to it".to_owned();
            return Err(RequestError::Unreachable(words));
        }
        let slot = Arc::<Slot>::default();
        slots.insert(tenant.clone(), Arc::clone(&slot));
        Ok(slot)
    }

    /// Opens a connection with the revision that the server spoke last, or else with the other.
    /// Each attempt at a program has a process of its own. The first attempt has a third of the
    /// time, and the other one the rest.
    async fn open(&self, tenant: &TenantId, starts: &mut Starts) -> Result<Connection, RequestError> {
        let era = *self.era.lock();
        let (began, limit) = (Instant::now(), self.definition.connect_timeout());
        let error = match self.open_with(tenant, era, began + limit / 3, starts).await {
            Ok(connection) => return Ok(connection),
            Err(error) => error,
        };
        if !error.may_be_other_era() {
            return Err(error);
        }
        let connection = self.open_with(tenant, era.other(), began + limit, starts).await?;
        *self.era.lock() = era.other();
        Ok(connection)
    }

    async fn open_with(
        &self,
        tenant: &TenantId,
        era: Era,
        until: Instant,
        starts: &mut Starts,
    ) -> Result<Connection, RequestError> {
        if self.endpoint.is_process() {
            starts.add(Instant::now())?;
        }
        let requests = Arc::new(Requests::default());
        let limit = self.definition.connect_timeout();
        // A connection serves more than the run that opens it.
        let span = tracing::info_span!(parent: None, "mcp", server = self.definition.name);
        let opening = self.endpoint.open(tenant, &requests, era, (until, limit), &self.tasks);
        let opened = opening.instrument(span).await?;
        Ok(Connection::new(opened, requests, self.tasks.clone()))
    }

    /// Closes a connection once it has been unused for a while, or when the service stops.
    fn close_when_unused(self: &Arc<Self>, tenant: &TenantId, connection: &Arc<Connection>) {
        let (server, tenant, connection) = (Arc::clone(self), tenant.clone(), Arc::clone(connection));
        self.tasks.spawn(async move {
            tokio::select! {
                () = server.stop.cancelled() => (),
                () = connection.idle(IDLE) => (),
            }
            server.forget(&tenant, &connection).await;
        });
    }

    async fn forget(&self, tenant: &TenantId, connection: &Arc<Connection>) {
        let slot = self.slots.lock().get(tenant).cloned();
        let Some(slot) = slot else { return };
        let mut state = slot.lock().await;
        if state
            .connection
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(current, connection))
        {
            // The last reference ends the connection.
            state.connection = None;
            connection.kill();
            self.slots.lock().remove(tenant);
        }
    }
}
