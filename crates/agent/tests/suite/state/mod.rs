//! The state as a value, its transitions, and its stored form.

mod agent_state;
mod continuation;
mod stored;
mod times_of_change;
mod transitions;
