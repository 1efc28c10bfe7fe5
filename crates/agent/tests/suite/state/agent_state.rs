//! The state as a value: cheap copies, exact round trips, its figures.

use std::sync::{Arc, Mutex};

use agent::HookPoint;
use agent::state::AgentState;
use serde_json::json;
use test_support::fake_model::{asks_for, says};
use test_support::fake_tool::{Behaviour, FakeTool};
use values::clock::Clock as _;
use values::ids::{MessageId, UuidV7Source};
use values::message::{Message, Role};

use crate::hooks::probe::Probe;
use crate::setup::Setup;

#[tokio::test(start_paused = true)]
async fn a_copy_of_a_long_state_shares_its_messages() {
    let setup = Setup::new([]);
    let now = setup.clock.now();
    let message = |n: usize| Message::text(MessageId::generate(&UuidV7Source), Role::User, n.to_string(), now);
    let state = setup.new_state().with_input((0..10_000).map(message), now);
    let copy = state.clone();
    let longer = copy.clone().with_input([message(10_000)], now);
    assert_eq!(
        (copy.stored_messages().count(), longer.stored_messages().count()),
        (10_000, 10_001)
    );
    for (original, others) in state
        .stored_messages()
        .zip(copy.stored_messages().zip(longer.stored_messages()))
    {
        // Not only the messages are shared but the places that hold them: no list was copied.
        assert!(std::ptr::eq(original, others.0) && std::ptr::eq(original, others.1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_survives_a_round_trip_at_every_point_of_an_execution() {
    let states = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&states);
    let camera = Probe::at_each(HookPoint::ALL, move |context| {
        seen.lock().unwrap().push((context.point, context.state.clone()));
        Ok(context)
    });
    let echo = FakeTool::new("echo", Behaviour::EchoArguments);
    let answers = [asks_for(&[("c1", "echo", "{}"), ("c2", "unknown", "")]), says("done")];
    let setup = Setup::new(answers).with_tool(&echo).with_hook(camera);
    setup.run().await;
    let states = states.lock().unwrap().clone();
    assert_eq!(states.len(), 16);
    for (point, state) in states {
        let json = serde_json::to_value(&state).unwrap();
        let text = json.to_string();
        for transient in ["current_step", "current_step_started_at", "input_messages"] {
            assert!(!text.contains(transient), "{point:?}: {transient}");
        }
        let restored: AgentState = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(serde_json::to_value(&restored).unwrap(), json, "{point:?}");
        assert_eq!(restored.current_step(), None);
        assert_eq!(
            restored.stored_messages().collect::<Vec<_>>(),
            state.stored_messages().collect::<Vec<_>>()
        );
        assert_eq!(restored.step_count(), state.step_count());
        assert_eq!(restored.status(), state.status());
    }
}

#[tokio::test(start_paused = true)]
async fn a_state_that_a_later_version_wrote_loads() {
    let setup = Setup::new([says("done")]);
    let mut json = serde_json::to_value(setup.run().await).unwrap();
    json["mood"] = json!("fine");
    json["execution"]["weather"] = json!({"is": "mild"});
    json["execution"]["continuation"]["stop_signals"] = json!([{"reason": "moon_phase", "message": "full"}]);
    let state: AgentState = serde_json::from_value(json).unwrap();
    assert_eq!(state.final_text(), "done");
    assert_eq!(state.stop_signal().unwrap().message, "full");
}
