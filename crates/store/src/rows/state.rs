//! Environments in `states`, as a commit writes them.

use super::{Row, Value};
use crate::codec::Payload;
use values::session::Hash;

/// An environment to write.
#[derive(Debug)]
pub(crate) struct NewEnvironment {
    /// The hash of the root directory of its files. A sweep finds it here without decoding.
    pub(crate) tree: Option<Hash>,
    pub(crate) payload: Payload,
}

impl Row for NewEnvironment {
    fn visit<'v>(&'v self, column: &mut dyn FnMut(&'static str, Value<'v>)) {
        column("tree", (&self.tree).into());
        self.payload.visit(column);
    }
}
