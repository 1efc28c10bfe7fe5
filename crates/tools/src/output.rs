//! Caps the output of a tool, so that one result fills neither the context nor the history.

use values::message::{ContentPart, MediaSource};

/// The most bytes of base64 of all images and documents of a result. They do not count as text: a
/// picture takes more bytes than any text, but fewer tokens.
const MAX_MEDIA_BYTES: usize = 7 << 20;

/// Truncates a result to the limit of bytes and adds a note for the model. Images and documents in
/// the result have a limit of their own.
pub(super) fn capped(content: Vec<ContentPart>, max_bytes: usize) -> Vec<ContentPart> {
    let sum = |media: bool| {
        let parts = content.iter().filter(|part| is_media(part) == media);
        parts.map(size).fold(0, usize::saturating_add)
    };
    let (total, total_media) = (sum(false), sum(true));
    if total <= max_bytes && total_media <= MAX_MEDIA_BYTES {
        return content;
    }
    let (mut left, mut left_media) = (max_bytes, MAX_MEDIA_BYTES);
    let mut retained = Vec::new();
    for part in content {
        let bytes = size(&part);
        let left = if is_media(&part) { &mut left_media } else { &mut left };
        if bytes <= *left {
            *left -= bytes;
            retained.push(part);
            continue;
        }
        if let Some(text) = part.as_text().filter(|_| *left > 0) {
            retained.push(ContentPart::text(&text[..text.floor_char_boundary(*left)]));
        }
        break;
    }
    let (total, limit) = if total > max_bytes {
        (format!("{total} bytes"), max_bytes)
    } else {
        (format!("{total_media} bytes of images and documents"), MAX_MEDIA_BYTES)
    };
    retained.push(ContentPart::text(format!(
        "[The output is cut here: it had {total}, and the limit is {limit}. Ask for less at a time.]"
    )));
    retained
}

/// Returns a text, or its beginning with a note if it is longer than the limit.
pub(super) fn beginning(text: &str, max_bytes: usize) -> String {
    let begin = &text[..text.floor_char_boundary(max_bytes)];
    match text.len() - begin.len() {
        0 => text.to_owned(),
        left_out => format!("{begin}… [{left_out} more bytes]"),
    }
}

/// Returns whether a part contains the bytes of an image or a document.
fn is_media(part: &ContentPart) -> bool {
    match part {
        ContentPart::Image(part) => matches!(part.source, MediaSource::Base64 { .. }),
        ContentPart::Document(part) => matches!(part.source, MediaSource::Base64 { .. }),
        _ => false,
    }
}

fn size(part: &ContentPart) -> usize {
    let media = |source: &MediaSource| match source {
        MediaSource::Url { url } => url.len(),
        MediaSource::Base64 { data, .. } => data.len(),
        MediaSource::ProviderFile { provider, file_id } => provider.len() + file_id.len(),
    };
    match part {
        ContentPart::Text(part) => part.text.len(),
        ContentPart::Image(part) => media(&part.source),
        ContentPart::Document(part) => media(&part.source),
        other => serde_json::to_vec(other).map_or(usize::MAX, |json| json.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use values::message::ImagePart;

    fn image(bytes: usize) -> ContentPart {
        ContentPart::Image(ImagePart {
            source: MediaSource::Base64 {
                media_type: "image/png".to_owned(),
                data: "A".repeat(bytes),
            },
            detail: None,
        })
    }

    #[test]
    fn what_fits_is_left_alone() {
        let content = vec![ContentPart::text("abc"), image(7)];
        assert_eq!(capped(content.clone(), 3), content);
        assert_eq!(capped(Vec::new(), 0), Vec::new());
    }

    #[test]
    fn a_text_is_cut_between_characters_and_marked() {
        let content = capped(vec![ContentPart::text("ééé"), ContentPart::text("tail")], 3);
        assert_eq!(content.len(), 2);
        assert_eq!(content[0].as_text(), Some("é"));
        let note = content[1].as_text().unwrap();
        assert!(note.contains("10 bytes") && note.contains("limit is 3"), "{note}");
    }

    #[test]
    fn a_beginning_says_what_it_leaves_out() {
        assert_eq!(beginning("ééé", 6), "ééé");
        assert_eq!(beginning("ééé", 3), "é… [4 more bytes]");
    }

    #[test]
    fn pictures_have_a_limit_of_their_own_and_are_never_cut_in_two() {
        let content = vec![
            ContentPart::text("ab"),
            image(MAX_MEDIA_BYTES),
            ContentPart::text("tail"),
        ];
        assert_eq!(capped(content.clone(), 10), content);
        let cut = capped([content, vec![image(1)]].concat(), 10);
        assert_eq!(cut.len(), 4);
        let note = cut[3].as_text().unwrap();
        assert!(
            note.contains(&format!("{} bytes of images", MAX_MEDIA_BYTES + 1)),
            "{note}"
        );
    }
}
