//! A client whose connection breaks sends its request again, and gets the same response.

use test_support::proxy::Proxy;

use super::{World, play, sessions, url};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_under_one_key_runs_the_agent_once() {
    for script in ["with_openai.py", "with_openai.mjs"] {
        let world = World::start().await;
        let proxy = Proxy::start(world.service.address.clone(), "drop me").await;
        let address = proxy.url(&url(&world.service));
        if play(&world.home, script, &["retry", &address]).is_none() {
            continue;
        }
        assert_eq!(proxy.cuts(), 1);
        assert_eq!(world.asked(), ["system: You help. | user: drop me"]);
        let expected = (None, "user: drop me | assistant: echo: drop me".to_owned());
        assert_eq!(sessions(&world.service).await, [expected]);
        world.service.stop().await;
    }
}
