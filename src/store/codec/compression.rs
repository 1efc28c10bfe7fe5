//! Compresses payloads into zstd frames with a dictionary, and decompresses them. Payloads are
//! mostly short and alike, so a dictionary halves many of them.
//!
//! A dictionary never changes, since stored payloads need it. A better one gets a new encoding.

use std::cell::RefCell;
use std::io;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::CParameter;

/// Text that many payloads contain, the most frequent last, without a header.
const TEXT_1: &[u8] = include_bytes!("dictionary_1.txt");
/// Trained by `scripts/train-dictionary`. Also contains typical frequencies of bytes.
const TRAINED_2: &[u8] = include_bytes!("dictionary_2.zdict");
const LEVEL: i32 = 3;

/// The first dictionary. Frames without a dictionary can be read with it, too.
pub(super) static DICTIONARY_1: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(TEXT_1));
/// The second dictionary, which frames are written with.
pub(super) static DICTIONARY_2: LazyLock<DecoderDictionary<'static>> =
    LazyLock::new(|| DecoderDictionary::copy(TRAINED_2));
static FOR_WRITING: LazyLock<EncoderDictionary<'static>> = LazyLock::new(|| EncoderDictionary::copy(TRAINED_2, LEVEL));

thread_local! {
    // Setting up a context costs more than compressing or decompressing a few kilobytes.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses bytes with the newest dictionary.
pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    COMPRESSOR.with_borrow_mut(|slot| match slot {
        Some(compressor) => compressor.compress(bytes),
        None => slot.insert(compressor()?).compress(bytes),
    })
}

fn compressor() -> io::Result<Compressor<'static>> {
    let mut compressor = Compressor::with_prepared_dictionary(&FOR_WRITING)?;
    // The encoding of the payload names the dictionary.
    compressor.set_parameter(CParameter::DictIdFlag(false))?;
    Ok(compressor)
}

/// Decompresses a frame of so many bytes with the dictionary that it was compressed with.
pub(super) fn decompress(
    frame: &[u8],
    size: usize,
    dictionary: &'static DecoderDictionary<'static>,
) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|slot| {
        let decompressor = match slot {
            Some(decompressor) => decompressor,
            None => slot.insert(Decompressor::new()?),
        };
        decompressor.set_prepared_dictionary(dictionary)?;
        decompressor.decompress(frame, size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionaries_never_change() {
        for (dictionary, hash) in [
            (
                TEXT_1,
                "c6b1860ed3ce988bb71b532cb5af8d7219d88a2cb95d95a35f04540509227df5",
            ),
            (
                TRAINED_2,
                "760c9a1f33e26e237ee982c7ada952f71b8360203498331338c2c0b13ac2ac20",
            ),
        ] {
            let found = blake3::hash(dictionary).to_string();
            assert_eq!(found, hash, "stored payloads are read by it");
        }
    }
}
