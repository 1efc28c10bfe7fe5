//! The event for a hook's changes of the state: the parts, and the new metadata.

use agent::HookPoint;
use agent::hooks::HookSubject;
use serde_json::json;
use test_support::fake_model::says;
use values::json::{Object, Value};
use values::message::ContentPart;
use values::model_ref::ResponseFormat;

use crate::hooks::probe::Probe;
use crate::setup::Setup;

fn object<const N: usize>(pairs: [(&str, Value); N]) -> Object {
    pairs
        .map(|(name, value)| (name.to_owned(), value))
        .into_iter()
        .collect()
}

#[tokio::test(start_paused = true)]
async fn each_part_that_a_hook_changes_is_named_and_new_metadata_is_emitted() {
    let changing = Probe::changing(HookPoint::BeforeExecution, |mut context| {
        let HookSubject::Input(input) = &mut context.subject else {
            panic!("an execution begins with its input")
        };
        input[0].content = vec![ContentPart::text("stop")];
        context.state = context
            .state
            .with_metadata(object([
                ("kept", json!(1)),
                ("city", json!("Bern")),
                ("new", json!(true)),
            ]))
            .with_system_prompt("Be brief.")
            .with_response_format(ResponseFormat::JsonObject);
        context
    });
    let silent = Probe::changing(HookPoint::BeforeExecution, |context| context).named("silent");
    let noting = Probe::changing(HookPoint::AfterStep, |mut context| {
        context.state = context.state.with_metadata(object([("city", json!("Basel"))]));
        context
    });
    let setup = Setup::new([says("{}")])
        .with_hook(changing)
        .with_hook(silent)
        .with_hook(noting.named("noting"));
    let metadata = object([("kept", json!(1)), ("city", json!("Basel"))]);
    let state = setup.run_from(setup.new_state().with_metadata(metadata), "go").await;
    assert_eq!(state.final_value(), Some(&json!({})));
    let reported = setup.events.events().into_iter();
    let reported = reported.map(|event| serde_json::to_value(event).unwrap());
    let reported = reported.filter(|event| event["type"] == "state.changed");
    assert_eq!(
        reported.map(|event| event["data"].clone()).collect::<Value>(),
        json!([
            {
                "step_number": 1, "hook": "probe", "point": "before_execution",
                "changes": ["metadata", "system_prompt", "response_format", "input"],
                "metadata": {"city": "Bern", "new": true},
            },
            {
                "step_number": 1, "hook": "noting", "point": "after_step",
                "changes": ["metadata"], "metadata": {"city": "Basel"},
            },
        ])
    );
}
