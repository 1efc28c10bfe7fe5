//! The ports of hooks that a test calls without an agent.

use std::sync::Arc;

use agent::compilers::{Sections, Traces};
use agent::hooks::{ExecutionPorts, StackSlot};
use agent::model_calls::{ModelChain, ModelChoice};
use agent::{ExecutionControl, RequestRoom};
use values::ids::UuidV7Source;
use values::tenant::TenantId;

use crate::fake_model::FakeModel;
use crate::recorder::Recorder;

/// Makes the ports of a tenant's execution whose model emits nothing.
pub fn execution_ports(tenant: &TenantId, control: ExecutionControl) -> ExecutionPorts {
    let choice = ModelChoice {
        model_ref: "fake/one".parse().unwrap(),
        model: FakeModel::new([]),
        price: None,
    };
    ExecutionPorts {
        tenant: tenant.clone(),
        models: ModelChain::new(choice, []),
        compiler: Arc::new(Sections::conversation(Traces::default())),
        control: Arc::new(control),
        ids: Arc::new(UuidV7Source),
        events: Arc::new(Recorder::default()),
        request_room: RequestRoom::new(1 << 20),
        stack: StackSlot::default(),
    }
}
