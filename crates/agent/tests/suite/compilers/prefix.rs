//! A request that is compiled from what earlier turns retained has the same messages as one that is
//! compiled from the whole history.

use std::sync::Arc;

use agent::compilers::{CompilerConfig, Traces};
use agent::state::{AgentContext, AgentState, MessageStore};
use proptest::prelude::*;
use serde_json::json;
use values::ids::{ExecutionId, UuidV7Source};
use values::session::{History, RequestPrefix};

use super::{CURRENT, Line, histories, state};

proptest! {
    /// The earlier turns see other ends of the history, and their own messages are at the end.
    #[test]
    fn what_earlier_turns_retained_changes_no_request(
        lines in histories(),
        held_from in 0..10_usize,
        traces in prop::sample::select(vec![Traces::All, Traces::Unfinished, Traces::None]),
        mut ends in prop::collection::vec(0..50_usize, 1..4),
    ) {
        let last_end = ends.iter().copied().max().unwrap_or_default();
        let of_others = |(at, line): (usize, &Line)| match line.execution {
            CURRENT if at < last_end => line.clone().of(0),
            _ => line.clone(),
        };
        let lines: Vec<Line> = lines.iter().enumerate().map(of_others).collect();
        let whole = state(&lines, held_from);
        ends.sort_unstable();
        for config in [
            json!({"kind": "conversation"}),
            json!({"kind": "all_sections"}),
            json!({"kind": "sections", "names": ["messages", "summary"]}),
        ] {
            let config: CompilerConfig = serde_json::from_value(config).unwrap();
            let compiler = config.compiler(traces);
            let history = whole.store().history();
            let current = whole.execution().unwrap().execution_id;
            let mut prefix = None;
            for end in &ends {
                let messages = history.iter().take(end.saturating_sub(history.first_index())).cloned();
                let earlier = History::starting_at(history.first_index(), messages);
                let other = ExecutionId::generate(&UuidV7Source);
                let earlier = with_history(&whole, earlier, prefix.as_ref(), other);
                prefix = earlier.messages(&*compiler).prefix().cloned().or(prefix);
            }
            let continued = with_history(&whole, history.clone(), prefix.as_ref(), current);
            let expected = compiler.read(&whole).into_messages();
            prop_assert_eq!(continued.messages(&*compiler), expected.clone(), "{:?}", prefix);
            prop_assert_eq!(whole.messages(&*compiler), expected);
        }
    }
}

/// Returns the state of an execution with this history, and with what was retained.
fn with_history(
    state: &AgentState,
    history: History,
    prefix: Option<&Arc<RequestPrefix>>,
    execution: ExecutionId,
) -> AgentState {
    let history = match prefix {
        Some(prefix) => history.with_request_prefix(Arc::clone(prefix)),
        None => history,
    };
    let now = state.created_at();
    let context = AgentContext {
        store: MessageStore::new(history),
        ..AgentContext::default()
    };
    let state = AgentState::new(state.agent_id(), now).restored(now, now, 1, context);
    state.start_execution(execution, now)
}
