//! Random runs, each as its events and as what is stored of it.

mod plan;

mod json;
mod making;

pub(in crate::http) use self::json::{RUN, TIME, event, summary};
pub(in crate::http) use self::making::Made;
pub(in crate::http) use self::plan::{CallPlan, End, Kind, Plan, StepPlan, Takeover, plans};
