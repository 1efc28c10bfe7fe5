//! The forms of stored contexts, of this version and of earlier ones.

/// How a context is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ContextForm {
    /// Without the agent instance, which is in the session's row.
    WithoutAgent,
    /// With the agent instance, as earlier versions stored it. Only imports of their exports still
    /// write this form.
    WithAgent,
}
