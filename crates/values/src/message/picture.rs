//! Reads the size of a picture from its header. Does not decode pictures.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Also accepts the output of lenient encoders.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The bytes of base64 in which the size is looked for. Before it, a JPEG may have a preview and
/// the data of a camera.
const HEADER: usize = 256 << 10;

/// The most bytes of base64 of a picture that every provider takes: the limit of Anthropic.
const MAX_BASE64: usize = 5 << 20;
/// The longest side of a picture that every provider takes, in pixels.
const MAX_SIDE: usize = 8_000;

/// Returns why some providers refuse a picture because of its size; `None` if none does. `data` is
/// base64.
pub fn picture_problem(data: &str) -> Option<String> {
    if data.len() > MAX_BASE64 {
        return Some(format!(
            "it has {} bytes in base64, and some models take at most {MAX_BASE64}",
            data.len()
        ));
    }
    let side = picture_side(data).filter(|side| *side > MAX_SIDE)?;
    Some(format!(
        "it has a side of {side} pixels, and some models take at most {MAX_SIDE}"
    ))
}

/// Returns the longer side of a picture in pixels; `None` if its header is not understood. `data`
/// is base64.
pub fn picture_side(data: &str) -> Option<usize> {
    let end = data.len().min(HEADER) / 4 * 4;
    let bytes = BASE64.decode(data.get(..end)?).ok()?;
    let size = imagesize::blob_size(&bytes).ok()?;
    Some(size.width.max(size.height))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_side_is_read_from_the_header() {
        let gif = |width: u16, height: u16| {
            let mut bytes = b"GIF89a".to_vec();
            bytes.extend([width.to_le_bytes(), height.to_le_bytes()].concat());
            bytes.extend([0; 20]);
            BASE64.encode(bytes)
        };
        assert_eq!(picture_side(&gif(9_000, 2)), Some(9_000));
        assert_eq!(picture_side(&gif(3, 40)), Some(40));
        for data in ["", "AAAA", "not base64"] {
            assert_eq!(picture_side(data), None);
        }
    }
}
