//! Bytes of any kind, in pieces of any size.

use models::CapSettings;
use proptest::prelude::*;

use super::recordings::recorded;
use super::support::decode_with;
use crate::support::damaged;

/// Errors have no equality, so their texts are compared.
fn shown(chunks: &[&[u8]]) -> String {
    format!("{:?}", decode_with(CapSettings::default(), chunks))
}

proptest! {
    #[test]
    fn the_size_of_pieces_means_nothing(which in any::<prop::sample::Index>(), size in 1..300_usize) {
        let recorded = recorded();
        let body = &which.get(&recorded).1.body;
        let pieces: Vec<_> = body.chunks(size).collect();
        prop_assert_eq!(shown(&pieces), shown(&[body]));
    }

    #[test]
    fn any_bytes_end_in_an_answer_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..600), head in prop::sample::select(vec![&b""[..], b"\0\0\0\x40", b"{\"output\": ["])) {
        let bytes = [head, &bytes].concat();
        let _ = decode_with(CapSettings::default(), &[&bytes]);
    }

    #[test]
    fn a_damaged_recording_ends_in_an_answer_or_an_error(position in any::<prop::sample::Index>(), byte in any::<u8>(), end in any::<prop::sample::Index>()) {
        for (_, exchange) in recorded() {
            let bytes = damaged(exchange.body, position, byte, end);
            let _ = decode_with(CapSettings::default(), &[&bytes]);
        }
    }
}

#[test]
fn recordings_mean_the_same_byte_by_byte() {
    for (label, exchange) in recorded() {
        let bytes: Vec<_> = exchange.body.chunks(1).collect();
        assert_eq!(shown(&bytes), shown(&[&exchange.body]), "{label}");
        for end in (0..exchange.body.len()).step_by(41) {
            let _ = decode_with(CapSettings::default(), &[&exchange.body[..end]]);
        }
    }
}
