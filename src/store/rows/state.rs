//! Environments in `states`, as a commit writes them and as a sweep of contents reads them.

use super::{PayloadRow, Row, Value, row};
use crate::session::Hash;
use crate::store::codec::{Payload, StoredPayload};

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

row! {
    /// The tree of an environment or of an entry of a journal.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct TreeRow<'r> {
        /// The hash, or no bytes if only the payload has it.
        pub(crate) tree: &'r [u8],
        pub(crate) in_journal: i16,
        ;
        payload: PayloadRow<&'r [u8]>,
    }
}

impl TreeRow<'_> {
    /// Returns the environment as it is stored.
    pub(crate) fn stored(&self) -> StoredPayload<'_> {
        self.payload.stored()
    }
}
