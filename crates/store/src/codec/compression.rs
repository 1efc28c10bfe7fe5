//! Compresses payloads into zstd frames with a dictionary, and decompresses them. Payloads are
//! mostly short and alike, so a dictionary halves many of them.
//!
//! The dictionary never changes, since stored payloads need it. A better one gets a new encoding.

use std::cell::RefCell;
use std::io;
use std::sync::LazyLock;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::zstd_safe::CParameter;

/// Trained by `scripts/train-dictionary`. Also contains typical frequencies of bytes.
const DICTIONARY: &[u8] = include_bytes!("dictionary.zdict");
const LEVEL: i32 = 3;

static FOR_READING: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));
static FOR_WRITING: LazyLock<EncoderDictionary<'static>> = LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));

thread_local! {
    // Setting up a context costs more than compressing or decompressing a few kilobytes.
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

/// Compresses bytes with the dictionary.
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

/// Decompresses a frame whose content has `size` bytes.
pub(super) fn decompress(frame: &[u8], size: usize) -> io::Result<Vec<u8>> {
    DECOMPRESSOR.with_borrow_mut(|slot| match slot {
        Some(decompressor) => decompressor.decompress(frame, size),
        None => slot
            .insert(Decompressor::with_prepared_dictionary(&FOR_READING)?)
            .decompress(frame, size),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dictionary_never_changes() {
        let found = blake3::hash(DICTIONARY).to_string();
        let hash = "e756eab447f7ed4f696a4dd419a43382c1f04c455d370ab5a0c027204fe066d7";
        assert_eq!(found, hash, "stored payloads are read by it");
    }
}
