//! Commands that are sent together. Each has the tenant of its keys, since a cluster node has only
//! the keys of some tenants.

use std::collections::BTreeMap;

use redis::{Cmd, Pipeline};

use values::tenant::TenantId;

/// Some commands.
#[derive(Debug, Default)]
pub(super) struct Request {
    commands: Vec<(Option<TenantId>, Cmd)>,
}

/// Commands that one node executes, with their positions in the request.
type Part = (Pipeline, Vec<usize>);

impl Request {
    /// Creates a request of one command of a tenant.
    pub(super) fn of(tenant: &TenantId, command: Cmd) -> Self {
        let mut request = Self::default();
        request.add(tenant, command);
        request
    }

    /// Adds a command on keys of a tenant.
    pub(super) fn add(&mut self, tenant: &TenantId, command: Cmd) {
        self.commands.push((Some(tenant.clone()), command));
    }

    /// Adds a publication. It is sent after all commands on keys.
    pub(super) fn publish(&mut self, command: Cmd) {
        self.commands.push((None, command));
    }

    /// Returns the number of commands.
    pub(super) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns whether there is nothing to send.
    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// Returns all commands in their order.
    pub(super) fn pipeline(&self) -> Pipeline {
        let mut pipeline = Pipeline::with_capacity(self.commands.len());
        for (_, command) in &self.commands {
            pipeline.add_command(command.clone());
        }
        pipeline
    }

    /// Returns the commands of each tenant, and the publications.
    pub(super) fn by_slot(&self) -> (Vec<Part>, Option<Part>) {
        let mut parts: BTreeMap<Option<&TenantId>, Part> = BTreeMap::new();
        for (position, (tenant, command)) in self.commands.iter().enumerate() {
            let (pipeline, positions) = parts.entry(tenant.as_ref()).or_default();
            pipeline.add_command(command.clone());
            positions.push(position);
        }
        let publications = parts.remove(&None);
        (parts.into_values().collect(), publications)
    }
}
