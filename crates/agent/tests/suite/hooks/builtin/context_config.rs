//! `context_config`: what it sets is in force for the execution, and stays in the state.

use serde_json::json;
use test_support::fake_model::says;
use values::model_ref::ResponseFormat;

use crate::setup::Setup;

#[tokio::test(start_paused = true)]
async fn prompt_and_format_are_in_force_for_every_request_and_stay() {
    let config = json!({"system_prompt": "Answer as {{ metadata.role }}.", "response_format": {"type": "json_object"}});
    let setup = Setup::new([says("{}")]).with_attached("context_config", config);
    let metadata = serde_json::from_value(json!({"role": "a poet"})).unwrap();
    let state = setup.new_state().with_system_prompt("before").with_metadata(metadata);
    let state = setup.run_from(state, "go").await;
    let request = &setup.model.requests()[0];
    assert_eq!(
        (&*request.system, &request.response_format),
        ("Answer as a poet.", &ResponseFormat::JsonObject)
    );
    let context = state.context();
    assert_eq!(context.system_prompt, "Answer as {{ metadata.role }}.");
    assert_eq!(context.response_format, ResponseFormat::JsonObject);
}

#[tokio::test(start_paused = true)]
async fn what_it_does_not_set_stays_as_it_is() {
    let setup =
        Setup::new([says("{}")]).with_attached("context_config", json!({"response_format": {"type": "json_object"}}));
    let state = setup
        .run_from(setup.new_state().with_system_prompt("before"), "go")
        .await;
    assert_eq!(state.context().system_prompt, "before");
    let setup = Setup::new([says("a")]).with_attached("context_config", json!({"system_prompt": ""}));
    let state = setup
        .run_from(setup.new_state().with_system_prompt("before"), "go")
        .await;
    assert_eq!(&*setup.model.requests()[0].system, "");
    assert_eq!(state.context().response_format, ResponseFormat::Text);
}
