//! Sessions: immutable bundles of three states, their history, lineage and differences. No IO.

mod bundle;
mod context_state;
mod coverage;
mod diff;
mod environment_state;
mod hash;
mod history;
mod override_changes;
mod overrides;
mod part_sizes;
mod preview;
mod request_prefix;
mod root_hash;
mod run_outcome;
mod tool_pins;
mod validity;
mod waiting;

pub use self::bundle::{BranchPosition, Bundle, BundleDraft, SessionHead};
pub use self::context_state::{AgentInstance, ContextState, StoredContext};
pub use self::coverage::{CoverageFault, find_history_start};
pub use self::diff::{BundleDiff, StatesDiff, ValueChange, diff_bundles, diff_states};
pub use self::environment_state::{EnvironmentState, ShellState, WorkspaceState, change_values};
pub use self::hash::{
    Hash, ParseHashError, hash_content, hash_context, hash_definition, hash_directory, hash_environment, hash_segment,
};
pub use self::history::History;
pub use self::override_changes::{OverrideChanges, Setting};
pub use self::overrides::Overrides;
pub use self::overrides::stored_overrides;
pub use self::part_sizes::{
    PartTooLarge, check_history, check_metadata, check_parts, check_resources, check_variables,
};
pub use self::preview::{preview_of, title_of};
pub use self::request_prefix::{Fold, PrefixChoice, RequestPrefix, Total};
pub use self::run_outcome::RunOutcome;
pub use self::tool_pins::{PinnedTool, ToolPins, hash_tool_definition};
pub use self::validity::{HistoryFault, close_open_tool_calls, find_history_fault};
pub use self::waiting::{OpenCall, OpenCallKind, RememberedApproval, WaitingStep, hash_approval_rule, hash_arguments};
