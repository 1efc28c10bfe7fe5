//! The key of a tool call: the same each time that the call is executed.
//!
//! Another process, or a run that starts over, computes the same key. The key of a call of the
//! run's own agent derives from the run. The key of a subagent's call derives from the key of the
//! call that the subagent executes. So keys need no storage. The key also names the subagent's
//! journal.

use values::ids::RunId;
use values::message::ToolCall;

/// Separates these hashes from all others.
const DOMAIN: &str = "agent-runtime 2026-11 key of a tool call";

/// The seed of the keys of an execution's calls: its run or, for a subagent, the call that the
/// subagent executes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallSeed(String);

impl CallSeed {
    /// Makes the seed of a run's own agent.
    pub fn of_run(run_id: RunId) -> Self {
        Self(run_id.to_string())
    }

    /// Makes the seed of a subagent from the key of the call that the subagent executes.
    pub fn of_call(key: impl Into<String>) -> Self {
        Self(key.into())
    }

    /// Returns the key of a call as the model wrote it: 64 hexadecimal digits. Steps count from 1,
    /// calls of a step from 0.
    ///
    /// The key ignores changes that hooks make to the arguments. These may differ from one attempt
    /// to the next, but the call is the same.
    pub fn key(&self, step_number: usize, index: usize, call: &ToolCall) -> String {
        let mut hasher = blake3::Hasher::new_derive_key(DOMAIN);
        let numbers = [step_number.to_string(), index.to_string()];
        let [step_number, index] = &numbers;
        for field in [&self.0, step_number, index, &call.name, &call.arguments] {
            // The length precedes the field, so that no two lists of fields have the same bytes.
            hasher.update(&(field.len() as u64).to_le_bytes());
            hasher.update(field.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_key_is_stable_and_differs_by_everything_that_it_is_made_of() {
        let call = |name: &str, arguments: &str| ToolCall {
            id: "c1".to_owned(),
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            signature: None,
        };
        let (run, other) = (CallSeed::of_call("a"), CallSeed::of_call("b"));
        let key = run.key(1, 0, &call("echo", "{}"));
        assert_eq!(key, "dc0c5fba61b457065a3ae14237b0601fd2f0755ba347162e7af0987b1f871627");
        let renamed = ToolCall {
            id: "c2".to_owned(),
            ..call("echo", "{}")
        };
        assert_eq!(
            run.key(1, 0, &renamed),
            key,
            "ids of calls differ from answer to answer"
        );
        let keys = [
            key,
            other.key(1, 0, &call("echo", "{}")),
            run.key(2, 0, &call("echo", "{}")),
            run.key(1, 1, &call("echo", "{}")),
            run.key(11, 0, &call("echo", "{}")),
            run.key(1, 0, &call("ech", "o{}")),
            run.key(1, 0, &call("echo", "")),
        ];
        assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), keys.len(), "{keys:?}");
    }
}
