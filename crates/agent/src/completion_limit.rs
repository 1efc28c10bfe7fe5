//! How many tokens the next completion may have, and the signals of budgets.

use serde_json::json;

use crate::state::{StopReason, StopSignal};
use values::json::Value;

/// Names the budget as the source of stop signals.
const BUDGET: &str = "budget";
/// How many tokens the estimate of a completion may exceed the rest of the budget by. A short text
/// may consist of long words only, so its estimate is less precise.
const OVERRUN_SLACK: u64 = 8;

/// The limit of one completion.
#[derive(Debug, Clone)]
pub struct CompletionLimit {
    /// The most tokens that the completion may have.
    pub tokens: u64,
    pub(crate) reason: StopReason,
    /// The name of the limit that allows no more tokens.
    pub(crate) name: &'static str,
    pub(crate) value: Value,
}

impl CompletionLimit {
    /// Makes the limit of a completion that may spend what is left of a limit that runs share.
    pub(crate) fn of_claim(tokens: u64) -> Self {
        Self {
            tokens,
            reason: StopReason::SpendLimitReached,
            name: "left_output_tokens",
            value: json!(tokens),
        }
    }

    /// Returns whether the limit is what a request has claimed, which may grow.
    pub(crate) fn is_of_claim(&self) -> bool {
        self.reason == StopReason::SpendLimitReached
    }

    /// Returns the signal for a request that leaves no tokens for a completion.
    pub fn refusal(&self, input_tokens: u64) -> Option<StopSignal> {
        let message = format!("too little is left for a request of at least {input_tokens} tokens and its answer");
        let signal = || limit(self.reason, self.name, self.value.clone(), &message);
        (self.tokens == 0).then(signal)
    }

    /// Returns whether a completion of at least `least` tokens exceeds the limit.
    pub fn is_overrun(&self, least: u64) -> bool {
        least > self.tokens.saturating_add(OVERRUN_SLACK)
    }

    /// Returns the signal for a completion that exceeds the limit.
    pub fn overrun(&self) -> StopSignal {
        let message = "the answer overran the tokens that were left";
        limit(self.reason, self.name, self.value.clone(), message)
    }
}

/// Makes the signal of a limit of the budget. No request to continue overrides it.
pub(crate) fn limit(reason: StopReason, name: &str, value: Value, message: &str) -> StopSignal {
    let message = format!("{message}: {name} is {value}");
    StopSignal::new(reason, BUDGET, message)
        .with_figure(name, value)
        .binding()
}
