//! The events of runs: what every board promises of them, and their bounds in memory.

mod bounds;
mod contract;
