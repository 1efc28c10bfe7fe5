//! Pairs the calls of the provider's own tools with their results.
//!
//! The protocol rejects one without the other, and a history may lack either. For example, a
//! response was cut before the result arrived, or a request contains only the end of a turn.

use std::collections::BTreeMap;

use rpds::HashTrieSetSync;

use crate::envelope::count_calls;
use crate::fields::Fields;
use crate::names::ID_BYTES;
use crate::target::Target;
use values::message::{ContentPart, Message, OpaquePart, Role};

/// The calls and the results of the provider's own tools in a conversation. A copy costs the same
/// for any number of them.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerTools {
    /// The ids of calls and results.
    seen: HashTrieSetSync<String>,
    called: HashTrieSetSync<String>,
    answered: HashTrieSetSync<String>,
    /// Calls that the provider may still execute, since no message of the caller follows them.
    open: HashTrieSetSync<String>,
}

/// The kind of a server tool's block.
enum Side {
    Call(String),
    Result(String),
}

impl ServerTools {
    /// Collects the blocks that the target has made from the next messages.
    pub(super) fn read<'a>(&mut self, messages: impl Iterator<Item = &'a Message>, target: &Target) {
        for message in messages {
            if matches!(message.role, Role::User | Role::System) {
                self.open = HashTrieSetSync::default();
            }
            for part in &message.content {
                let ContentPart::Opaque(part) = part else { continue };
                if !target.made_part(message, part) {
                    continue;
                }
                match side(part) {
                    Some(Side::Call(id)) => {
                        self.seen.insert_mut(id.clone());
                        self.open.insert_mut(id.clone());
                        self.called.insert_mut(id);
                    }
                    Some(Side::Result(id)) => {
                        self.seen.insert_mut(id.clone());
                        if self.called.contains(&id) {
                            self.answered.insert_mut(id);
                        }
                    }
                    None => {}
                }
            }
        }
    }

    /// Returns whether each call has a result and each result has a call. If not, a later message
    /// may change which of the blocks so far may be sent.
    pub(super) fn are_all_answered(&self) -> bool {
        self.seen.size() == self.answered.size()
    }

    /// Returns about how many bytes of memory the ids take.
    pub(super) fn bytes(&self) -> usize {
        (self.seen.size() + self.called.size() + self.answered.size()) * ID_BYTES
    }

    /// Returns whether a block may be sent. Blocks other than calls and results may.
    pub(super) fn allows(&self, part: &OpaquePart) -> bool {
        match side(part) {
            Some(Side::Call(id)) => self.answered.contains(&id) || self.open.contains(&id),
            Some(Side::Result(id)) => self.answered.contains(&id),
            None => true,
        }
    }
}

/// Counts the calls of the provider's own tools in a completion, by tool.
pub(super) fn counted(content: &[ContentPart]) -> BTreeMap<String, u64> {
    count_calls(content.iter().filter_map(|part| match part {
        ContentPart::Opaque(part) if matches!(side(part), Some(Side::Call(_))) => {
            let block = Fields::parse(part.raw.as_str()).unwrap_or_default();
            Some(block.filled("name").unwrap_or_else(|| "unnamed".to_owned()))
        }
        _ => None,
    }))
}

fn side(part: &OpaquePart) -> Option<Side> {
    let block = Fields::parse(part.raw.as_str())?;
    let kind = block.text("type")?;
    if kind.ends_with("_tool_use") {
        block.filled("id").map(Side::Call)
    } else if kind.ends_with("_tool_result") {
        block.filled("tool_use_id").map(Side::Result)
    } else {
        None
    }
}
