//! How often memory is allocated while text arrives: once for each event, whose text leaves the
//! decoder. Names, numbers and fields that are not retained are read where they are.

use agent::ports::ModelEvent;
use allocation_counter::measure;
use models::CapSettings;
use test_support::samples::ALL;

/// How many deltas a chunk has.
const DELTAS: usize = 64;
/// The growth of the text of the completion, which doubles.
const GROWTH: u64 = 2;

#[test]
fn a_delta_of_text_is_allocated_once() {
    for samples in ALL {
        let name = samples.name;
        let chunk = (samples.delta)().repeat(DELTAS);
        let mut decoder = (samples.make)(Some("text/event-stream"), CapSettings::default());
        let mut events = Vec::with_capacity(2 * DELTAS);
        // The first chunk makes the buffers of the stream.
        decoder.push(&chunk, &mut events).unwrap();
        events.clear();
        let taken = measure(|| decoder.push(&chunk, &mut events).unwrap());
        let is_word = |event: &ModelEvent| matches!(event, ModelEvent::TextDelta { text } if text == "word ");
        assert!(
            events.len() == DELTAS && events.iter().all(is_word),
            "{name}: {events:?}"
        );
        let most = samples.delta_allocations * DELTAS as u64 + GROWTH;
        assert!(taken.count_total <= most, "{name}: {} allocations", taken.count_total);
    }
}
