//! The hooks that agents attach by name. Each checks its own configuration, and an instance belongs
//! to one execution.

mod context_config;
mod finish_reason;
mod limits;
mod redaction;
mod self_critique;
mod summarisation;

use self::context_config::ContextConfigFactory;
use self::finish_reason::FinishReasonFactory;
use self::limits::LimitsFactory;
use self::redaction::RedactionFactory;
use self::self_critique::SelfCritiqueFactory;
pub use self::summarisation::SummarisationFactory;
use crate::hooks::HookFactory;

/// Returns the hooks that need nothing but the ports of an execution; the composition root adds the
/// others.
pub fn builtin_hooks() -> Vec<Box<dyn HookFactory>> {
    vec![
        Box::new(ContextConfigFactory),
        Box::new(FinishReasonFactory),
        Box::new(LimitsFactory),
        Box::<RedactionFactory>::default(),
        Box::new(SelfCritiqueFactory),
    ]
}
