//! Runs, and the tools that they call.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use chrono::TimeDelta;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;

use super::names::{ByName, OTHER};
use super::registration::Registration;
use agent::AgentEvent;
use agent::record::RunSummary;
use agent::state::{StopReason, ToolVerdict};
use values::tenant::TenantId;

/// The upper bounds of the durations of runs, in seconds.
const RUN_SECONDS: [f64; 7] = [0.1, 0.5, 2.0, 10.0, 60.0, 300.0, 1_800.0];
/// The upper bounds of the durations of calls, in seconds.
const CALL_SECONDS: [f64; 6] = [0.01, 0.1, 1.0, 5.0, 30.0, 300.0];
/// The upper bounds of the time in the queue, in seconds.
const WAIT_SECONDS: [f64; 10] = [0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 1_800.0];

/// The end of a call that succeeded.
const OK: &str = "ok";

/// Metrics of runs.
#[derive(Debug)]
pub struct RunMetrics {
    ended: Family<Ended, Counter>,
    durations: Family<Agent, Histogram, fn() -> Histogram>,
    by_agent: ByName<String, AgentMetrics, 100>,
    waits: Histogram,
    takeovers: Counter,
    leases_lost: Counter,
    calls: Family<Call, Counter>,
    call_durations: Family<Tool, Histogram, fn() -> Histogram>,
    by_tool: ByName<String, ToolMetrics, 100>,
    tenants: BTreeSet<TenantId>,
    of_tenants: Family<OfTenant, Counter>,
    costs_of_tenants: Family<Tenant, Counter<f64, AtomicU64>>,
}

/// How a run is executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunKind {
    /// In the process of the request.
    Light,
    /// By a worker, from the queue.
    Queued,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Ended {
    agent: Arc<str>,
    status: &'static str,
    stop_reason: &'static str,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Agent {
    agent: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tool {
    tool: Arc<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Call {
    tool: Arc<str>,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfTenant {
    tenant: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Tenant {
    tenant: String,
}

#[derive(Debug)]
struct AgentMetrics {
    name: Arc<str>,
    duration: Histogram,
}

#[derive(Debug)]
struct ToolMetrics {
    name: Arc<str>,
    /// Calls that succeeded: most do.
    succeeded: Counter,
    duration: Histogram,
}

impl RunKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Queued => "queued",
        }
    }
}

impl RunMetrics {
    pub(super) fn register(registration: &mut Registration, tenants: BTreeSet<TenantId>) -> Self {
        let metrics = Self {
            ended: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(RUN_SECONDS)),
            by_agent: ByName::default(),
            waits: Histogram::new(WAIT_SECONDS),
            takeovers: Counter::default(),
            leases_lost: Counter::default(),
            calls: Family::default(),
            call_durations: Family::new_with_constructor(|| Histogram::new(CALL_SECONDS)),
            by_tool: ByName::default(),
            tenants,
            of_tenants: Family::default(),
            costs_of_tenants: Family::default(),
        };
        registration.add(
            "runs",
            &["agent", "status", "stop_reason", "kind"],
            "Ended runs",
            &metrics.ended,
        );
        registration.add(
            "run_duration_seconds",
            &["agent"],
            "From start to end of a run",
            &metrics.durations,
        );
        registration.add(
            "queue_wait_seconds",
            &[],
            "From acceptance to start of a queued run",
            &metrics.waits,
        );
        registration.add(
            "takeovers",
            &[],
            "Queued runs that this process took up after an earlier attempt at them was lost",
            &metrics.takeovers,
        );
        registration.add(
            "leases_lost",
            &[],
            "Leases of this process that it could not renew, or that another process took",
            &metrics.leases_lost,
        );
        registration.add(
            "tool_calls",
            &["tool", "outcome"],
            "Ended calls of tools",
            &metrics.calls,
        );
        registration.add(
            "tool_call_duration_seconds",
            &["tool"],
            "From start to end of a call that a tool executed",
            &metrics.call_durations,
        );
        registration.add(
            "tenant_runs",
            &["tenant", "status"],
            "Ended runs of the tenants in metrics.tenants",
            &metrics.of_tenants,
        );
        registration.add(
            "tenant_cost_dollars",
            &["tenant"],
            "What the ended runs of the tenants in metrics.tenants have cost, as far as prices are known",
            &metrics.costs_of_tenants,
        );
        metrics
    }

    /// Counts a run whose first attempt begins, after this time in the queue.
    pub fn began(&self, waited: TimeDelta) {
        self.waits.observe(seconds(waited));
    }

    /// Counts a run that a worker takes up after a lost attempt.
    pub fn taken_over(&self) {
        self.takeovers.inc();
    }

    /// Counts a lease that this process has lost.
    pub fn lease_lost(&self) {
        self.leases_lost.inc();
    }

    /// Counts a run that has ended.
    pub fn ended(&self, tenant: &TenantId, run: &RunSummary, kind: RunKind) {
        let agent = self
            .by_agent
            .of(&run.agent, |name| self.agent(name.map_or(OTHER, String::as_str)));
        let status = run.status.as_str();
        self.ended
            .get_or_create(&Ended {
                agent: Arc::clone(&agent.name),
                status,
                stop_reason: run.stop_reason.map_or("none", StopReason::as_str),
                kind: kind.as_str(),
            })
            .inc();
        if let (Some(started), Some(completed)) = (run.started_at, run.completed_at) {
            agent.duration.observe(seconds(completed - started));
        }
        if self.tenants.contains(tenant) {
            let tenant = tenant.to_string();
            let cost = run.usage.known_cost().dollars();
            let costs = &self.costs_of_tenants;
            costs.get_or_create(&Tenant { tenant: tenant.clone() }).inc_by(cost);
            self.of_tenants.get_or_create(&OfTenant { tenant, status }).inc();
        }
    }

    /// Counts what an event of an execution says.
    pub fn note(&self, event: &AgentEvent) {
        let AgentEvent::ToolCallCompleted {
            name,
            is_error,
            verdict,
            is_foreign,
            duration_ms,
            ..
        } = event
        else {
            return;
        };
        // The model or the caller makes up the name of a foreign tool.
        let tool = if *is_foreign {
            self.by_tool.of(&OTHER.to_owned(), |_| self.tool(OTHER))
        } else {
            self.by_tool
                .of(name, |name| self.tool(name.map_or(OTHER, String::as_str)))
        };
        let outcome = match verdict {
            ToolVerdict::Executed if *is_error => "error",
            ToolVerdict::Executed => OK,
            other => other.as_str(),
        };
        if *verdict == ToolVerdict::Executed {
            tool.duration.observe(seconds(TimeDelta::milliseconds(*duration_ms)));
        }
        if outcome == OK {
            tool.succeeded.inc();
        } else {
            let tool = Arc::clone(&tool.name);
            self.calls.get_or_create(&Call { tool, outcome }).inc();
        }
    }

    fn agent(&self, name: &str) -> AgentMetrics {
        let agent: Arc<str> = name.into();
        AgentMetrics {
            duration: self.durations.get_or_create_owned(&Agent {
                agent: Arc::clone(&agent),
            }),
            name: agent,
        }
    }

    fn tool(&self, name: &str) -> ToolMetrics {
        let tool: Arc<str> = name.into();
        ToolMetrics {
            succeeded: self.calls.get_or_create_owned(&Call {
                tool: Arc::clone(&tool),
                outcome: OK,
            }),
            duration: self.call_durations.get_or_create_owned(&Tool {
                tool: Arc::clone(&tool),
            }),
            name: tool,
        }
    }
}

fn seconds(time: TimeDelta) -> f64 {
    time.to_std().unwrap_or(Duration::ZERO).as_secs_f64()
}
