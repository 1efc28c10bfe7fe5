//! The ids of responses and of their items. They hold the id of the run, so no table is needed.
//!
//! | item | its id after the prefix |
//! |---|---|
//! | words of a step | the run, the step, and the number among the items of the kind |
//! | a call of a step, or its result | the run, the step, and the hash of the id of the call |
//! | a part of the input of a run | the run, the message, and a number as above |
//! | a part of another message | the message twice, and a number as above |
//!
//! So an item has its id as long as it exists, also if another one of its step is deleted.

use std::fmt;

use serde::{Serialize, Serializer};
use uuid::Uuid;

use values::ids::{MessageId, RunId, StepId};

const RESPONSE: &str = "resp_";
/// The digits of the id of a run.
const RUN_DIGITS: usize = 32;

/// The kind of an item with an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) enum ItemKind {
    /// A message.
    Message,
    /// A call that the caller answers.
    FunctionCall,
    /// Reasoning.
    Reasoning,
    /// A call of a tool of the agent.
    McpCall,
    /// A call that needs an approval.
    ApprovalRequest,
    /// The result of a call that the caller has answered.
    FunctionOutput,
}

/// The id of an item: its kind, its run, and its index in the items of the run. An index is never
/// used again in another attempt of the run, so it begins with the id of its step or message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::http) struct ItemId {
    /// The kind.
    pub(in crate::http) kind: ItemKind,
    /// The run; of a message that no run has, the id of the message.
    pub(in crate::http) run_id: RunId,
    /// The index.
    pub(in crate::http) index: u64,
}

impl ItemKind {
    const ALL: [Self; 6] = [
        Self::Message,
        Self::FunctionCall,
        Self::Reasoning,
        Self::McpCall,
        Self::ApprovalRequest,
        Self::FunctionOutput,
    ];

    fn prefix(self) -> &'static str {
        match self {
            Self::Message => "msg_",
            Self::FunctionCall => "fc_",
            Self::Reasoning => "rs_",
            Self::McpCall => "mcp_",
            Self::ApprovalRequest => "mcpr_",
            Self::FunctionOutput => "fco_",
        }
    }
}

impl ItemId {
    /// Makes the id of the block of a step with a number.
    pub(in crate::http) fn of_block(kind: ItemKind, run_id: RunId, step_id: StepId, number: usize) -> Self {
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        Self::within(kind, run_id, step_id.as_uuid(), number)
    }

    /// Makes the id of a call of a step. The calls of a run that finishes the step have the same
    /// indexes.
    pub(in crate::http) fn of_call(kind: ItemKind, run_id: RunId, step_id: StepId, call_id: &str) -> Self {
        Self::within(kind, run_id, step_id.as_uuid(), Self::call_number(call_id))
    }

    /// Makes the id of a part of a message that no step has made. `run_id` is the run that has the
    /// message as its input.
    pub(in crate::http) fn of_message(
        kind: ItemKind,
        run_id: Option<RunId>,
        message_id: MessageId,
        number: u32,
    ) -> Self {
        let own_id = RunId::from_uuid(message_id.as_uuid());
        Self::within(kind, run_id.unwrap_or(own_id), message_id.as_uuid(), number)
    }

    /// Returns the number of a call in a step or a message.
    pub(in crate::http) fn call_number(call_id: &str) -> u32 {
        let [a, b, c, d, ..] = *blake3::hash(call_id.as_bytes()).as_bytes();
        u32::from_le_bytes([a, b, c, d])
    }

    /// Returns the number of the item in a step or a message; `None` if it is in another one.
    pub(in crate::http) fn number_in(self, owner: Uuid) -> Option<u32> {
        let number = u32::try_from(self.index & u64::from(u32::MAX)).ok()?;
        (self.owner() == Self::owner_of(owner)).then_some(number)
    }

    /// Returns the last digits of the id of its step or its message.
    pub(in crate::http) fn owner(self) -> u64 {
        self.index >> 32
    }

    /// Returns the last digits of the id of a step or a message, which are random: 32 bits.
    pub(in crate::http) fn owner_of(id: Uuid) -> u64 {
        let (_, random) = id.as_u64_pair();
        random & u64::from(u32::MAX)
    }

    fn within(kind: ItemKind, run_id: RunId, owner: Uuid, number: u32) -> Self {
        let index = (Self::owner_of(owner) << 32) | u64::from(number);
        Self { kind, run_id, index }
    }
}

impl Serialize for ItemId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for ItemId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, run_id, index } = self;
        write!(f, "{}{}{index}", kind.prefix(), run_id.as_uuid().simple())
    }
}

/// Returns the id of the response of a run.
pub(in crate::http) fn response_id(run_id: RunId) -> String {
    format!("{RESPONSE}{}", run_id.as_uuid().simple())
}

/// Reads the id of a response; `None` if no response can have it.
pub(in crate::http) fn parse_response_id(text: &str) -> Option<RunId> {
    parse_run(text.strip_prefix(RESPONSE)?)
}

/// Reads the id of an item; `None` if no item can have it.
pub(in crate::http) fn parse_item_id(text: &str) -> Option<ItemId> {
    let of_kind = |kind: ItemKind| {
        let (run, index) = text.strip_prefix(kind.prefix())?.split_at_checked(RUN_DIGITS)?;
        let run_id = parse_run(run)?;
        let is_plain = index.bytes().all(|digit| digit.is_ascii_digit());
        let index = index.parse().ok().filter(|_| is_plain)?;
        Some(ItemId { kind, run_id, index })
    };
    ItemKind::ALL.into_iter().find_map(of_kind)
}

fn parse_run(digits: &str) -> Option<RunId> {
    let is_plain = digits.len() == RUN_DIGITS && digits.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
    let run_id = is_plain.then(|| Uuid::try_parse(digits).ok())?;
    run_id.map(RunId::from_uuid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_knows_its_number_in_its_own_message_alone() {
        let [message_id, other] = [7, 8].map(|number| MessageId::from_uuid(Uuid::from_u128(number)));
        let id = ItemId::of_message(ItemKind::Message, None, message_id, u32::MAX);
        assert_eq!(id.number_in(message_id.as_uuid()), Some(u32::MAX));
        assert_eq!(id.number_in(other.as_uuid()), None);
    }

    #[test]
    fn ids_survive_their_text_and_nothing_else_is_one() {
        let run_id = RunId::from_uuid(Uuid::from_u128(0x0197_f3c2_1b1e_7c3a_9d54_3f1f_0a6f_8c11));
        assert_eq!(response_id(run_id), "resp_0197f3c21b1e7c3a9d543f1f0a6f8c11");
        assert_eq!(parse_response_id(&response_id(run_id)), Some(run_id));
        for kind in ItemKind::ALL {
            let id = ItemId {
                kind,
                run_id,
                index: 12,
            };
            assert_eq!(parse_item_id(&id.to_string()), Some(id));
        }
        for text in [
            "",
            "resp_",
            "resp_0197F3C21B1E7C3A9D543F1F0A6F8C11",
            "resp_0197f3c2-1b1e-7c3a-9d54-3f1f0a6f8c11",
            "msg_0197f3c21b1e7c3a9d543f1f0a6f8c11",
            "msg_0197f3c21b1e7c3a9d543f1f0a6f8c11+1",
            "msg_0197f3c21b1e7c3a9d543f1f0a6f8c1é1",
            "fc_1",
        ] {
            assert_eq!(parse_item_id(text), None, "{text}");
            assert_eq!(parse_response_id(text), None, "{text}");
        }
    }
}
