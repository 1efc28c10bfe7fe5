//! Calls that the caller answers: calls of client tools, calls that need an approval, and calls
//! whose tools ask for input.
//!
//! ```text
//! approval.rs      which calls need an approval          the agent's definition
//! client_tool.rs   tools that the caller executes        the agent's definition
//! rules.rs         the need of a call, when it is made   from the driver
//! open_step.rs     the step that a waiting run leaves    from the driver to the session
//! answer.rs        the answers, checked                  from the caller
//! answered_step.rs the step with all answers             from the session to the driver
//! ```
//!
//! A step with open calls ends its execution: the calls that need no answer are executed, and the
//! step goes to the session. The next execution on that session finishes the step with the answers.
//! Nothing is held in memory in between.

mod answer;
mod answered_step;
mod approval;
mod client_tool;
mod open_step;
mod rules;

pub use self::answer::{Answer, AnswerContent, AnswerFault, Answers, ResolvedAnswer, ResolvedAnswers, resolve_answers};
pub use self::answered_step::{AnsweredStep, OpenStepFault};
pub use self::approval::{ApprovalChoice, ApprovalRule};
pub use self::client_tool::{ClientTool, ClientToolFault};
pub use self::open_step::open_step_id;
pub(super) use self::open_step::{OpenUse, suspended};
pub(super) use self::rules::Need;
pub use self::rules::{AnswerExpiry, AnswerRules};
