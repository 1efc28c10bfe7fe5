//! Builds the loop of an execution: the driver, tools and hooks that the agent names.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::run::context::RunContext;
use crate::run::subagents::subagent_tools;
use crate::run::work::{Failure, Work};
use agent::AgentLoop;
use agent::answers::AnswerRules;
use agent::drivers::{Driver, DriverPorts};
use agent::hooks::{ErrorPolicyHook, ExecutionGuard, ExecutionPorts, HookStack, StackSlot};
use agent::ports::Tool;

/// Guards run before all hooks that an agent attaches, and policies after them.
const GUARD_PRIORITY: i32 = 1_000;
const POLICY_PRIORITY: i32 = -1_000;

/// Creates the loop of an execution.
pub(in crate::run) fn agent_loop(ctx: &Arc<RunContext>, work: &Arc<Work>) -> Result<AgentLoop, Failure> {
    let (agent, control, events) = (&work.member.agent, &work.control, &work.events);
    let compiler = agent.compiler.compiler(work.traces);
    let stack = HookStack::default()
        .with_events(Arc::clone(events))
        .with_environment(Arc::clone(&work.environment))
        .with_hook(GUARD_PRIORITY, Arc::new(ExecutionGuard::new(Arc::clone(control))))
        .with_hook(
            POLICY_PRIORITY,
            Arc::new(ErrorPolicyHook::new(agent.error_policy, Arc::clone(&ctx.clock))),
        );
    let execution = ExecutionPorts {
        tenant: work.tenant.clone(),
        models: work.member.models.clone(),
        compiler: Arc::clone(&compiler),
        control: Arc::clone(control),
        ids: Arc::clone(&ctx.ids),
        events: Arc::clone(events),
        request_room: ctx.process.room.clone(),
        stack: StackSlot::default(),
    };
    let hooks = ctx.hooks.attach(stack, &work.hooks, &execution);
    let hooks = Arc::new(hooks.map_err(|error| Failure::hooks(&error))?);
    execution.stack.fill(&hooks);
    let mut own = subagent_tools(ctx, agent_loop, work);
    own.extend(
        work.client_tools
            .iter()
            .map(|tool| Arc::new(tool.to_tool()) as Arc<dyn Tool>),
    );
    let taken = taken_names(work, &own);
    own.extend(work.served.without(&taken));
    let tools = ctx.tools.executor_with(&work.tools, &agent.deferred_tools, own);
    let answers = AnswerRules {
        approvals: work.approvals.clone(),
        client_tools: Arc::clone(&work.client_tools),
        is_subagent: work.depth > 0,
        changed_tools: Arc::new(work.served.changed(&taken)),
        expiry: ctx.answer_expiry,
    };
    let ports = DriverPorts {
        tenant: work.tenant.clone(),
        models: work.member.models.clone(),
        parameters: Arc::new(agent.parameters.clone()),
        provider_tools: Arc::new(agent.provider_tools.clone()),
        answers: Arc::new(answers),
        tools: tools.map_err(|error| Failure::tools(&error))?,
        call_seed: work.call_seed.clone(),
        journal: work.journal.as_ref().map(|journal| Arc::clone(&journal.recorder)),
        parallel_tool_calls: agent.parallel_tool_calls,
        formats: Arc::clone(&work.formats),
        max_corrections: agent.max_corrections,
        compiler,
        hooks: Arc::clone(&hooks),
        control: Arc::clone(control),
        environment: Arc::clone(&work.environment),
        ids: Arc::clone(&ctx.ids),
        events: Arc::clone(events),
    };
    let driver = Driver::new(ports, agent.driver, agent.script.clone());
    let (ids, events) = (Arc::clone(&ctx.ids), Arc::clone(events));
    let agent_loop = AgentLoop::new(driver, hooks, events, Arc::clone(control), ids);
    let agent_loop = match &work.journal {
        Some(journal) => agent_loop.with_journal(Arc::clone(&journal.recorder)),
        None => agent_loop,
    };
    Ok(match &work.inbox {
        Some(inbox) => agent_loop.with_inbox(Arc::clone(inbox)),
        None => agent_loop,
    })
}

/// Returns the names of the tools that are not of MCP servers.
fn taken_names(work: &Work, own: &[Arc<dyn Tool>]) -> BTreeSet<String> {
    let provided = work.member.agent.provider_tools.values().flatten();
    let provided = provided.filter_map(|tool| tool.get("name")?.as_str().map(str::to_owned));
    let own = own.iter().map(|tool| tool.spec().name.clone());
    work.tools.iter().cloned().chain(own).chain(provided).collect()
}
