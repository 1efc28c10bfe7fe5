//! `redaction`: redacts the matches of patterns in everything that is sent to models and tools, and
//! in everything that is stored or emitted.
//!
//! It reads text. It does not read the bytes of images and documents, blocks that a provider has
//! encrypted, signatures, ids of calls, or the agent's definition, the run's metadata and the
//! variables.

mod arguments;
mod content;
mod known;
mod patterns;
mod redactor;
mod scan;
mod subject;

#[cfg(test)]
mod worst_case;

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::OnceCell;

use self::known::KnownPatterns;
use self::patterns::{Patterns, RedactionConfig};
use self::subject::{redact, withhold};
use crate::definition::AgentDefinition;
use crate::hook_point::HookPoint;
use crate::hooks::{ExecutionPorts, Hook, HookContext, HookError, HookFactory, HookSubject, ensure};
use values::json::Object;

const NAME: &str = "redaction";
/// The grace period that all redaction hooks of an interrupted execution share. It usually suffices
/// to redact the output instead of dropping it.
const GRACE: Duration = Duration::from_secs(1);

/// Makes hooks that redact.
#[derive(Debug, Default)]
pub(super) struct RedactionFactory {
    known: Arc<KnownPatterns>,
}

impl HookFactory for RedactionFactory {
    fn name(&self) -> &'static str {
        NAME
    }

    fn check(&self, config: &Object) -> Result<(), String> {
        Patterns::of(&RedactionConfig::read(config)?).map(drop)
    }

    /// Allows one such hook, since each takes its own memory and time.
    fn check_agent(&self, _config: &Object, agent: &AgentDefinition) -> Result<(), String> {
        let attached = agent.hooks.iter().filter(|hook| hook.name == NAME);
        ensure(
            attached.count() == 1,
            "an agent attaches it once, with the patterns of all",
        )
    }

    fn make(&self, config: &Object, ports: &ExecutionPorts) -> Result<Arc<dyn Hook>, String> {
        Ok(Arc::new(Redaction {
            config: RedactionConfig::read(config)?,
            known: Arc::clone(&self.known),
            patterns: OnceCell::new(),
            ports: ports.clone(),
        }))
    }
}

#[derive(Debug)]
struct Redaction {
    config: RedactionConfig,
    known: Arc<KnownPatterns>,
    /// The patterns, compiled on first use.
    patterns: OnceCell<Arc<Patterns>>,
    ports: ExecutionPorts,
}

impl Redaction {
    async fn redact(&self, subject: &mut HookSubject) -> Result<(), HookError> {
        let tenant = &self.ports.tenant;
        let compiled = || self.known.patterns(tenant, &self.config);
        let patterns = self.patterns.get_or_try_init(compiled).await;
        let patterns = patterns.map_err(HookError::new)?;
        redact(tenant, patterns, subject).await;
        Ok(())
    }
}

impl Hook for Redaction {
    fn name(&self) -> &'static str {
        NAME
    }

    fn points(&self) -> &[HookPoint] {
        &[
            HookPoint::BeforeExecution,
            HookPoint::BeforeModelRequest,
            HookPoint::AfterModelRequest,
            HookPoint::BeforeToolUse,
            HookPoint::AfterToolUse,
        ]
    }

    fn has_effects(&self) -> bool {
        false
    }

    fn call(&self, mut context: HookContext) -> BoxFuture<'_, Result<HookContext, HookError>> {
        Box::pin(async move {
            let time_limit = self.ports.control.time_limit(&context.state);
            tokio::select! {
                biased;
                redacted = self.redact(&mut context.subject) => redacted?,
                signal = self.ports.control.interrupted_for(time_limit, GRACE) => {
                    withhold(&mut context.subject);
                    context.state = context.state.with_stop_signal(signal, self.ports.control.now());
                }
            }
            Ok(context)
        })
    }

    fn holds_back_deltas(&self) -> bool {
        true
    }
}
